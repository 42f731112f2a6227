"""Writers of the input formats, used by tests alone: an estate in ARM shape as files of another format."""
