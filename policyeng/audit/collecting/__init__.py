"""Where the parts of an estate come from: files, directories, URLs and live Azure."""
