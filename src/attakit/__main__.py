"""`python -m attakit` is the command `attakit`."""

from attakit.cli import main

if __name__ == "__main__":
    main()
