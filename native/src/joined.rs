//! The rules of a policy in one run of the RVM.
//!
//! From one run to the next the machine forgets what rules came to. A run for each role would work out anew what
//! `applies`, `deny` and `unknown` share, which is most of what they do.

use crate::policy::Role;
use regorus::rvm::vm::VmError;
use regorus::rvm::{Instruction, Program, RegoVM};
use regorus::Value;

/// The name of the entry point, which no rule has.
const ENTRY: &str = "";

/// Adds an entry point that evaluates the roles in their order and ends early where the policy does not apply.
///
/// Exceptions stay on their own: they are asked only of what is denied.
///
/// # Errors
/// A reason when a role has no entry point that calls its rule.
pub fn join(program: &mut Program, roles: &[(Role, String)]) -> Result<(), String> {
    let start = program.instructions.len();
    for (register, (role, rule)) in (0..).zip(in_one_run(roles)) {
        let entry = program.entry_points.get(rule).and_then(|&place| program.instructions.get(place));
        let Some(&Instruction::CallRule { rule_index, .. }) = entry else {
            return Err(format!("{rule} is not called where it starts"));
        };
        program.add_instruction(Instruction::CallRule { dest: register, rule_index }, None);
        if *role == Role::Applies {
            program.add_instruction(Instruction::ReturnUndefinedIfNotTrue { condition: register }, None);
        }
        program.dispatch_window_size = program.dispatch_window_size.max(register.saturating_add(1));
    }
    program.add_instruction(Instruction::Return { value: 0 }, None);
    program.entry_points.insert(ENTRY.to_owned(), start);
    Ok(())
}

/// The roles that [`join`] puts into one run; their values come in this order.
pub fn in_one_run(roles: &[(Role, String)]) -> impl Iterator<Item = &(Role, String)> {
    roles.iter().filter(|(role, _)| *role != Role::Exception)
}

/// Runs them; a value that the run did not come to is undefined.
///
/// # Errors
/// The error of the machine.
pub fn run(machine: &mut RegoVM, roles: usize) -> Result<Vec<Value>, VmError> {
    machine.execute_entry_point_by_name(ENTRY)?;
    // The machine keeps its registers until it runs again.
    Ok(machine.get_registers().iter().take(roles).cloned().collect())
}

#[cfg(test)]
mod tests {
    use crate::bench::Bench;
    use crate::{judge, Documents, FaultKind, Limits, Outcome, Pair, Program, Role};
    use std::time::Duration;

    /// What either engine says of one resource by a policy with these rules.
    fn judged(rules: &str) -> [Outcome; 2] {
        let module = ("a.rego".to_owned(), format!("package a\n{rules}"));
        let roles = [(Role::Applies, "applies"), (Role::Deny, "deny"), (Role::Unknown, "unknown")];
        let roles = roles.into_iter().filter(|(_, name)| rules.contains(name));
        let roles: Vec<_> = roles.map(|(role, name)| (role, format!("data.a.{name}"))).collect();
        let documents = Documents::parse(br#"{"resources":[{"id":"/a","type":"t"}]}"#).unwrap();
        let limits = Limits { deadline: Duration::from_secs(5), memory: 1 << 26, instructions: 1000 };
        [false, true].map(|interpreter| {
            let policies = vec![("A".to_owned(), roles.clone())];
            let program = Program::compile(std::slice::from_ref(&module), b"{}", policies, interpreter).unwrap();
            assert_eq!(program.uses_interpreter(), interpreter);
            let parameters = [regorus::Value::new_object()];
            let bench =
                Bench { program: &program, documents: &documents, parameters: &parameters, as_of: "now", limits };
            judge(bench, &[Pair { policy: 0, subject: 0, workspace: None }], 1).unwrap().remove(0)
        })
    }

    const BOTH: &str =
        "deny contains \"d\" if shared == 7\nunknown contains \"u\" if shared == 7\nshared := count(\"seven t\")";

    #[test]
    fn one_run_says_what_a_run_for_each_role_says() {
        let findings = Outcome::Findings(r#"{"deny":["d"],"unknown":["u"]}"#.to_owned());
        for (applies, outcome) in [
            ("", &findings),
            ("applies if shared == 7", &findings),
            ("applies if shared == 8", &Outcome::NotApplicable),
            ("applies := shared == 8", &Outcome::NotApplicable),
        ] {
            let said = judged(&format!("{BOTH}\n{applies}"));
            assert_eq!([&said[0], &said[1]], [outcome, outcome], "{applies}");
        }
        assert_eq!(judged("deny contains 1 if input.resource.id == \"/b\""), [Outcome::Nothing, Outcome::Nothing]);
    }

    #[test]
    fn what_applies_must_be_a_boolean() {
        for said in judged(&format!("{BOTH}\napplies := shared")) {
            let Outcome::Fault(fault) = said else { panic!("{said:?}") };
            assert_eq!(
                (fault.kind, fault.message.as_str()),
                (FaultKind::Evaluation, "data.a.applies is not a boolean")
            );
        }
    }
}
