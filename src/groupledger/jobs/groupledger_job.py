"""The command `groupledger` as a script for spark-submit: `groupledger job-file` prints its path."""

from groupledger.cli import main

if __name__ == "__main__":
    main(prog_name="groupledger")
