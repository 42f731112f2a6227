package kubernetes.images

import future.keywords

images contains image if {
	some path, value
	walk(input, [path, value])
	path[count(path) - 1] == "image"
	image := value
}

deny_registry contains msg if {
	some image in images
	not startswith(image, "registry.example/")
	msg := sprintf("image %q is from elsewhere", [image])
}

warn_digest_missing contains msg if {
	some image in images
	not contains(image, "@sha256:")
	msg := sprintf("image %v has no digest", [image])
}

exception contains [""] if input.metadata.annotations["policy/skip"] == "all"
