"""What must survive a crash: one database for samples, questions, answers, versions and events."""
