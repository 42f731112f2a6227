package lib.exempt

is_exempt(object) {
  prefixes := object_get(input, "parameters", {})
  startswith(object.metadata.name, prefixes.exempt)
}

object_get(object, key, otherwise) = value {
  value := object[key]
} else = otherwise
