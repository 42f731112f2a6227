# METADATA
# description: References of container images, `[host[:port]/]path[:tag][@digest]`.
package lib.images

import data.lib.words

# has_digest(image): whether the reference names the content by its digest.
has_digest(image) if regex.match(`@[A-Za-z0-9_+.-]+:[0-9A-Fa-f]+$`, trim_space(image))

# tag(image): its tag in lower case, also with a digest; undefined where it names none.
tag(image) := lower(parts[1]) if {
	named := split(words.text(image), "@")[0]
	segments := split(trim_space(named), "/")
	parts := split(segments[count(segments) - 1], ":")
	trim_space(parts[1]) != ""
}

# is_pinned(image): whether it names a digest, or a tag other than `latest`.
is_pinned(image) if has_digest(image)

is_pinned(image) if tag(image) != "latest"
