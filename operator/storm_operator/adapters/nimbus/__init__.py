"""Storm's master, over Thrift: what runs where, and the few orders that Nimbus takes."""
