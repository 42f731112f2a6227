use super::*;

fn rewritten(text: &str, dialect: Dialect) -> String {
    let mut engine = parser();
    engine.add_policy("p.rego".to_owned(), format!("package p\n{text}")).unwrap();
    let modules = modules_of(&mut engine).unwrap();
    let text = desugar(&modules, dialect).unwrap().remove(0).1;
    let mut engine = parser();
    engine.add_policy("p.rego".to_owned(), text.clone()).unwrap();
    text.trim_start_matches("package p\n").to_owned()
}

#[test]
fn operands_leave_a_negation() {
    for (text, expected) in [
        ("p if not f(input.a, 1)", "p if { __1 := input.a; not f(__1, 1) }"),
        ("p if { x; not lower(input.a) in {1} }", "p if { x; __1 := lower(input.a); not __1 in {1} }"),
        ("p if not input.a == 1", "p if { not input.a == 1 }"),
        ("p if not f(1) with input as 2", "p if { not f(1) with input as 2 }"),
        ("p if not f(input.a) with input as 2", "p if { __1 := input.a with input as 2; not f(__1) with input as 2 }"),
    ] {
        assert_eq!(rewritten(text, Dialect::Interpreter), expected);
    }
}

#[test]
fn elements_of_a_set_rule_are_named_in_the_body() {
    for (text, expected) in [
        ("p contains x.a if x := input", "p contains __1 if { x := input; __1 := x.a }"),
        ("p contains f(1)", "p contains __1 if { __1 := f(1) }"),
        ("p contains {\n\"a\": 1} if {\n\tinput.b\n}", "p contains __1 if {\n\n\tinput.b; __1 := {\n\"a\": 1}\n}"),
    ] {
        assert_eq!(rewritten(text, Dialect::Interpreter), expected);
    }
}

#[test]
fn the_interpreter_looks_for_pairs_in_a_list_of_them() {
    for (text, expected) in [
        ("p if \"a\", x in {x}", "p if { [\"a\", x] in [[__1, __2] | some __1, __2 in {x}] }"),
        ("p if { 1, 2 in [3]; true }", "p if { [1, 2] in [[__1, __2] | some __1, __2 in [3]]; true }"),
    ] {
        assert_eq!(rewritten(text, Dialect::Interpreter), expected);
    }
}

#[test]
fn a_body_may_start_with_a_string_and_a_statement_with_a_parenthesis() {
    assert_eq!(rewritten("p if \"a\" == input", Dialect::Rvm), "p if { \"a\" == input }");
    let text = "p if {\nsome x in numbers.range(1, 2)\n(x + 1) == 2 }";
    assert!(rewritten(text, Dialect::Interpreter).contains("some x in (__1)\n"));
}

#[test]
fn the_interpreter_gets_collections_that_it_can_run_over_and_bounded_products() {
    let typed = "type_name(__1) in {\"array\", \"object\", \"set\"}";
    let expected = format!("p contains x if {{ __1 := input.a; {typed}; some x in __1 }}");
    assert_eq!(rewritten("p contains x if some x in input.a", Dialect::Interpreter), expected);
    let (text, expected) = ("p := (input.a + 1) * input.b", "p := product([(input.a + 1) , input.b])");
    assert_eq!(rewritten(text, Dialect::Interpreter), expected);
    assert_eq!(rewritten("p := input.a * 2", Dialect::Interpreter), "p := input.a * 2");
}

#[test]
fn the_rvm_gets_assignments_and_lists_that_fail_where_undefined() {
    for (text, expected) in [
        ("p if { x := input.a; true }", "p if { x := input.a; x == x; true }"),
        ("p := {x | x := input.a}", "p := {x | some __1 in [0]; x := input.a; x == x}"),
        ("p := [x.a | some x in input]", "p := [__1 | some x in input; __1 := x.a; __1 == __1]"),
    ] {
        assert_eq!(rewritten(text, Dialect::Rvm), expected);
    }
}

#[test]
fn what_is_nested_is_rewritten_too() {
    let text = "p if not f(count([x | some x in input.a; not g(x.b)]))";
    let rewritten = rewritten(text, Dialect::Rvm);
    assert!(rewritten.contains("not g(__") && rewritten.contains("not f(__"), "{rewritten}");
}
