package lib.konstraint

default is_gatekeeper = false

is_gatekeeper {
  has_field(input, "review")
  has_field(input.review, "object")
}

resource = input {
  not is_gatekeeper
}

resource = input.review.object {
  is_gatekeeper
}

format(msg) = {"msg": msg}

format_with_id(msg, id) = msg_fmt {
  msg_fmt := {"msg": sprintf("%s: %s", [id, msg]), "details": {"policyID": id}}
}

has_field(obj, field) {
  not object.get(obj, field, "N_DEFINED") == "N_DEFINED"
}

kind = resource.kind

name = resource.metadata.name
