"""`python -m groupledger` is the command `groupledger`."""

from groupledger.cli import main

main()
