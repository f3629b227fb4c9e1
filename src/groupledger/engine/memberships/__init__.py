"""Run assignors over anybody's tables of members and topics: many groups a call, with Spark or without."""
