//! Functions of the RVM that look at their arguments first.
//!
//! In Rego a call with an undefined argument is undefined. The RVM calls the function all the same, so each definition
//! gets a block in front that fails where an argument is undefined.

use regorus::rvm::instructions::GuardMode;
use regorus::rvm::{Instruction, Program};

/// Puts the block in front of every definition of every function.
///
/// # Errors
/// A reason when a definition takes its arguments apart in a way that cannot be copied, or when there is no room.
pub fn guard(program: &mut Program) -> Result<(), String> {
    for rule in 0..program.rule_infos.len() {
        let Some(function) = &program.rule_infos[rule].function_info else {
            continue;
        };
        let arguments =
            u8::try_from(function.num_params).map_err(|_| "a function with too many arguments".to_owned())?;
        for definition in 0..program.rule_infos[rule].destructuring_blocks.len() {
            let block = program.rule_infos[rule].destructuring_blocks[definition];
            let start = guarded(program, arguments, block)?;
            program.rule_infos[rule].destructuring_blocks[definition] = Some(start);
        }
    }
    if program.instructions.len() > Program::MAX_INSTRUCTIONS {
        return Err("the rules are too long".to_owned());
    }
    Ok(())
}

/// Appends the guards and a copy of a block, and gives the place where they start.
fn guarded(program: &mut Program, arguments: u8, block: Option<u32>) -> Result<u32, String> {
    let start = u32::try_from(program.instructions.len()).map_err(|_| "the rules are too long".to_owned())?;
    // The result is in the first register, the arguments in those that follow.
    for register in 1..=arguments {
        program.add_instruction(Instruction::Guard { register, mode: GuardMode::NotUndefined }, None);
    }
    let mut place = block.map_or(usize::MAX, |block| usize::try_from(block).unwrap_or(usize::MAX));
    loop {
        let instruction = program.instructions.get(place).copied().unwrap_or(Instruction::DestructuringSuccess {});
        match instruction {
            Instruction::LoopStart { .. } | Instruction::ComprehensionBegin { .. } | Instruction::AnyOfNext { .. } => {
                return Err("a function whose arguments hold a loop".to_owned());
            }
            _ => program.add_instruction(instruction, None),
        }
        if matches!(instruction, Instruction::DestructuringSuccess {}) {
            return Ok(start);
        }
        place += 1;
    }
}
