package lib.images_test

import data.lib.images

_digest := "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

_pinned := [
	concat("", ["acr.azurecr.io/base", _digest]),
	concat("", ["acr.azurecr.io/base:latest", _digest]),
	"acr.azurecr.io/base:1",
	"base:20260501",
	"localhost:5000/base:1",
]

_floating := [
	"acr.azurecr.io/base",
	"acr.azurecr.io/base:latest",
	"base:LATEST",
	"localhost:5000/base",
	"acr.azurecr.io:443/a/b",
	"base:",
	"base@",
	"base@sha256:",
]

test_pinned if {
	every image in _pinned { images.is_pinned(image) }
}

test_floating if {
	every image in _floating { not images.is_pinned(image) }
}

test_digest if {
	images.has_digest(_pinned[0])
	images.has_digest(_pinned[1])
	not images.has_digest("base:1")
}
