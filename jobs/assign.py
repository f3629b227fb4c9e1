"""Run the command `groupledger assign` with spark-submit, which needs the jars that Spark lacks:

spark-submit --jars "$(groupledger jars)" jobs/assign.py --config conf/cluster.yaml
"""

import sys

from groupledger.cli import main

if __name__ == "__main__":
    main(["assign", *sys.argv[1:]])
