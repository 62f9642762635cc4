"""The service over HTTP: predictions for machines, questions for people, numbers for both."""
