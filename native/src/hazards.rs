//! Constructs that the RVM judges otherwise than OPA: conflicts that it does not see, where OPA stops with an error, and
//! loops inside of `every`.
//!
//! Found by comparing the RVM with OPA: a rule or function with two values is undefined on the RVM, a loop in its body
//! keeps the last value, and an object keeps the last value of a key. The interpreter reports all of them.

use regorus::rvm::instructions::{ComprehensionMode, LoopMode};
use regorus::rvm::program::{RuleInfo, RuleType};
use regorus::rvm::{Instruction, Program};

/// The register that a rule leaves its value in.
const RESULT: u8 = 0;

/// Says why the RVM must not judge a program, if it must not.
#[must_use]
pub fn find(program: &Program) -> Option<String> {
    let params = &program.instruction_data.comprehension_begin_params;
    if params.iter().any(|params| matches!(params.mode, ComprehensionMode::Object)) {
        return Some("an object comprehension, whose key may get two values".to_owned());
    }
    if every_with_loop(program) {
        return Some("a loop in the body of `every`, in which its variables stand for any element".to_owned());
    }
    program.rule_infos.iter().find_map(|rule| in_rule(program, rule))
}

/// Whether something is walked through inside the body of an `every`.
///
/// There the RVM forgets the variables of the `every`: it walks through all of `list` for `list[i]`, and one element that
/// fits is enough. In the text such a reference cannot be told from others; in the program it is a loop.
fn every_with_loop(program: &Program) -> bool {
    let mut every_end = 0;
    program.instructions.iter().enumerate().any(|(place, instruction)| match *instruction {
        Instruction::LoopStart { params_index } => {
            let Some(params) = program.instruction_data.get_loop_params(params_index) else { return true };
            if matches!(params.mode, LoopMode::Every) {
                every_end = every_end.max(usize::from(params.loop_end));
                return false;
            }
            place < every_end
        }
        Instruction::ComprehensionBegin { .. } => place < every_end,
        _ => false,
    })
}

fn in_rule(program: &Program, rule: &RuleInfo) -> Option<String> {
    match rule.rule_type {
        RuleType::PartialSet => return None,
        RuleType::PartialObject => return Some(format!("the object {}, whose key may get two values", rule.name)),
        RuleType::Complete => (),
    }
    if rule.definitions.len() > 1 && !rule.early_exit_on_first_success {
        return Some(format!("{} has several definitions, which may disagree", rule.name));
    }
    let entries = rule.definitions.iter().flatten();
    let looped =
        entries.into_iter().any(|&entry| value_from_loop(program, usize::try_from(entry).unwrap_or(usize::MAX)));
    looped.then(|| format!("{} takes its value from a loop, which may give several", rule.name))
}

/// Whether the body that starts at `entry` sets its result inside a loop, to something that is not one constant.
fn value_from_loop(program: &Program, entry: usize) -> bool {
    let mut loop_end = 0;
    let mut constants = [false; 256];
    for (place, instruction) in program.instructions.iter().enumerate().skip(entry) {
        match *instruction {
            Instruction::LoopStart { params_index } => {
                let params = program.instruction_data.get_loop_params(params_index);
                let end =
                    params.filter(|params| !matches!(params.mode, LoopMode::Every)).map_or(0, |params| params.loop_end);
                loop_end = loop_end.max(usize::from(end));
            }
            Instruction::Load { dest, .. }
            | Instruction::LoadBool { dest, .. }
            | Instruction::LoadTrue { dest }
            | Instruction::LoadFalse { dest }
            | Instruction::LoadNull { dest } => constants[usize::from(dest)] = true,
            Instruction::Move { dest: RESULT, src } if place < loop_end && !constants[usize::from(src)] => return true,
            Instruction::RuleReturn {} => return false,
            _ => (),
        }
    }
    false
}
