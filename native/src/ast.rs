//! What a module may not contain: names of builtins that reach for the host, and absurd nesting.

use serde_json::Value as Json;
use std::num::NonZeroU32;

/// Builtins that read the host, the network, the clock or chance; and modules parsed or metadata read at run time.
pub(crate) const HOST: [&str; 22] = [
    "http.send",
    "net.lookup_ip_addr",
    "opa.runtime",
    "rand.intn",
    "time.now_ns",
    "uuid.rfc4122",
    "rego.parse_module",
    "rego.metadata.chain",
    "rego.metadata.rule",
    "io.jwt.decode_verify",
    "io.jwt.decode",
    "io.jwt.encode_sign",
    "io.jwt.encode_sign_raw",
    "providers.aws.sign_req",
    "crypto.x509.parse_and_verify_certificates",
    "crypto.x509.parse_and_verify_certificates_with_options",
    "trace",
    "print",
    "test.sleep",
    "__builtin_host_await",
    "internal.print",
    "internal.test_case",
];

/// Brackets open at one place; the parser calls itself for each.
const DEEPEST: usize = 1_000;

/// Refuses a module whose brackets nest too deep for the parser.
///
/// # Errors
/// A message that names file and line.
pub fn refuse_deep_nesting(path: &str, source: &str) -> Result<(), String> {
    let mut depth = 0_usize;
    for (line, text) in source.lines().enumerate() {
        for byte in text.bytes() {
            match byte {
                b'(' | b'[' | b'{' => depth += 1,
                b')' | b']' | b'}' => depth = depth.saturating_sub(1),
                _ => (),
            }
            if depth > DEEPEST {
                return Err(format!("{path}:{}: more than {DEEPEST} brackets are open", line + 1));
            }
        }
    }
    Ok(())
}

/// What is known of one parsed module.
#[derive(Debug, Clone)]
pub struct Module {
    /// Its path.
    pub path: String,
    /// Its text.
    pub source: String,
    /// The dotted name of its package, with `data` in front.
    pub package: String,
    /// Its imports, as regorus writes them.
    pub imports: Json,
    /// Its rules, as regorus writes them.
    pub rules: Json,
}

/// The parsed modules of an engine, in the order in which they were added.
///
/// # Errors
/// A message when regorus cannot write them down.
pub fn modules_of(engine: &mut regorus::Engine) -> Result<Vec<Module>, String> {
    let modules = engine.get_modules().iter().map(|module| {
        let source = &module.package.span.source;
        let mut tree = serde_json::to_value(module).map_err(|error| error.to_string())?;
        let package = reference(&tree["package"]["refr"]).map_or_else(String::new, |(name, _)| name);
        Ok(Module {
            path: source.get_path().clone(),
            source: source.get_contents().clone(),
            package: format!("data.{package}"),
            imports: tree["imports"].take(),
            rules: tree["rules"].take(),
        })
    });
    modules.collect()
}

/// Refuses modules that name a builtin which reaches for the host, called or not, and imports that change the language.
///
/// # Errors
/// A message that names file, line, column and what is refused.
pub fn refuse_host_builtins(modules: &[Module]) -> Result<(), String> {
    for module in modules {
        for import in module.imports.as_array().into_iter().flatten() {
            if let Some((name, place)) = reference(&import["refr"]).filter(|(name, _)| name == "future.keywords.not") {
                return Err(format!("{}:{}:{}: `{name}` is not supported", module.path, place["line"], place["col"]));
            }
        }
        visit(&module.path, &module.rules)?;
    }
    Ok(())
}

fn visit(path: &str, node: &Json) -> Result<(), String> {
    match node {
        Json::Array(items) => items.iter().try_for_each(|item| visit(path, item)),
        Json::Object(fields) => {
            if let Some((name, place)) = reference(node) {
                if HOST.contains(&name.as_str()) {
                    return Err(format!(
                        "{path}:{}:{}: `{name}` is not available to policies, which see their input and nothing else",
                        place["line"], place["col"]
                    ));
                }
            }
            refuse_walk_as_a_term(path, node)?;
            refuse_open_set(path, node)?;
            if let Some(params) = schema_verdict(node) {
                return visit(path, params);
            }
            refuse_schema_errors(path, node)?;
            fields.values().try_for_each(|field| visit(path, field))
        }
        _ => Ok(()),
    }
}

/// `x := walk(y)` is true of nothing in regorus; `walk(y, x)` is what it should be.
fn refuse_walk_as_a_term(path: &str, node: &Json) -> Result<(), String> {
    let call = &node["Call"];
    match reference(&call["fcn"]) {
        Some((name, place)) if name == "walk" && call["params"].as_array().is_some_and(|params| params.len() < 2) => {
            Err(format!("{path}:{}:{}: write `walk(x, [path, value])`", place["line"], place["col"]))
        }
        _ => Ok(()),
    }
}

/// `p[x].q contains y` loses elements that are asked for one by one.
fn refuse_open_set(path: &str, node: &Json) -> Result<(), String> {
    let mut refr = &node["head"]["Set"]["refr"];
    while let Some(part) = refr.get("RefDot").or_else(|| refr.get("RefBrack")) {
        if refr["RefBrack"]["index"].get("Var").is_some() {
            let span = &part["span"];
            return Err(format!(
                "{path}:{}:{}: a set rule under a variable key is not supported",
                span["line"], span["col"]
            ));
        }
        refr = &part["refr"];
    }
    Ok(())
}

/// The operands of a schema builtin of whose answer only the first part, whether it is valid, is looked at.
fn schema_verdict(node: &Json) -> Option<&Json> {
    let call = if let Some(first) = node.get("RefBrack").filter(|part| part["index"]["Number"]["value"] == 0) {
        &first["refr"]
    } else {
        let pair = node.get("AssignExpr").or_else(|| node.get("BoolExpr").filter(|equal| equal["op"] == "Eq"))?;
        let ignored = pair["lhs"]["Array"]["items"].as_array().filter(|items| items.len() == 2)?.get(1)?;
        if ignored["Var"]["value"] != "_" {
            return None;
        }
        &pair["rhs"]
    };
    is_schema_call(call).then(|| &call["Call"]["params"])
}

fn is_schema_call(node: &Json) -> bool {
    let name = reference(&node["Call"]["fcn"]).map(|(name, _)| name);
    let operands = node["Call"]["params"].as_array().map_or(0, Vec::len);
    match name.as_deref() {
        Some("json.match_schema") => operands == 2,
        Some("json.verify_schema") => operands == 1,
        _ => false,
    }
}

/// What is wrong with a document or schema is worded otherwise by regorus, and of another type.
fn refuse_schema_errors(path: &str, node: &Json) -> Result<(), String> {
    match reference(&node["Call"]["fcn"]) {
        Some((name, place)) if name == "json.match_schema" || name == "json.verify_schema" => Err(format!(
            "{path}:{}:{}: the errors of `{name}` are not those of OPA: write `[valid, _] := {name}(...)`",
            place["line"], place["col"]
        )),
        _ => Ok(()),
    }
}

/// An engine to parse with; regorus would refuse lines of more than 1,024 characters, and ours may become long.
#[must_use]
pub fn parser() -> regorus::Engine {
    const LONGEST_LINE: NonZeroU32 = NonZeroU32::new(1 << 20).unwrap();
    let mut engine = regorus::Engine::new();
    let limits = regorus::PolicyLengthConfig { max_col: LONGEST_LINE, ..regorus::PolicyLengthConfig::default() };
    engine.set_policy_length_config(limits);
    engine
}

/// The dotted name and the place of a chain of names, such as `time.now_ns`.
pub fn reference(node: &Json) -> Option<(String, &Json)> {
    if let Some(variable) = node.get("Var") {
        return Some((variable["value"].as_str()?.to_owned(), &variable["span"]));
    }
    let (chain, field) = match (node.get("RefDot"), node.get("RefBrack")) {
        (Some(chain), _) => (chain, chain["field"][1].as_str()?),
        (_, Some(chain)) => (chain, chain["index"]["String"]["value"].as_str()?),
        _ => return None,
    };
    let (prefix, place) = reference(&chain["refr"])?;
    Some((format!("{prefix}.{field}"), place))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(body: &str) -> Result<(), String> {
        let mut engine = regorus::Engine::new();
        engine.add_policy("p.rego".to_owned(), format!("package p\n\n{body}\n")).unwrap();
        refuse_host_builtins(&modules_of(&mut engine).unwrap())
    }

    #[test]
    fn a_host_builtin_is_named_with_its_place() {
        for body in ["x := time.now_ns()", "x := time[\"now_ns\"]()", "x if count([1]) with count as time.now_ns"] {
            let message = verdict(body).unwrap_err();
            assert!(message.starts_with("p.rego:3:") && message.contains("`time.now_ns`"), "{message}");
        }
    }

    #[test]
    fn walk_must_be_given_what_it_finds() {
        assert!(verdict("x contains y if [_, y] := walk(input)")
            .unwrap_err()
            .contains("write `walk(x, [path, value])`"));
        assert_eq!(verdict("x contains y if walk(input, [_, y])"), Ok(()));
    }

    #[test]
    fn only_the_verdict_of_a_schema_is_taken() {
        for body in [
            "x if { [valid, _] := json.match_schema(input, {}); valid }",
            "x if { [true, _] = json.match_schema(input, {}) }",
            "x if json.match_schema(input, {})[0]",
            "x if { [valid, _] := json.verify_schema({}); valid }",
        ] {
            assert_eq!(verdict(body), Ok(()), "{body}");
        }
        for body in [
            "x := json.match_schema(input, {})",
            "x if { [_, errors] := json.match_schema(input, {}); errors }",
            "x if json.match_schema(input, {}, y)",
            "x := json.match_schema(input, {})[1]",
            "x := json.verify_schema({})[i]",
        ] {
            assert!(verdict(body).unwrap_err().contains("[valid, _] :="), "{body}");
        }
        assert!(verdict("x if json.match_schema(time.now_ns(), {})[0]").unwrap_err().contains("time.now_ns"));
    }

    #[test]
    fn strings_comments_and_fields_of_that_name_are_fine() {
        for body in ["x := \"http.send\" # http.send()", "x := input.http.send", "x := time.clock(0)"] {
            assert_eq!(verdict(body), Ok(()));
        }
    }

    #[test]
    fn deep_nesting_is_refused_before_the_parser_sees_it() {
        assert!(refuse_deep_nesting("p", &"(".repeat(100_000)).unwrap_err().starts_with("p:1:"));
        assert_eq!(refuse_deep_nesting("p", &"[1]\n".repeat(5_000)), Ok(()));
    }
}
