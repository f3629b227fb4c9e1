"""Run `groupledger assign` from a checkout with spark-submit; `groupledger job-file` names the installed script.

spark-submit --jars "$(groupledger jars)" jobs/assign.py --config conf/cluster.yaml
"""

import sys

from groupledger.cli import main

if __name__ == "__main__":
    main(["assign", *sys.argv[1:]])
