"""Reports: statistics, figures, tables and one page from run folders; nothing here trains."""
