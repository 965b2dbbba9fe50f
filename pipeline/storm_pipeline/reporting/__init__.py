"""The report: sections made of gold tables, put into one page."""
