//! What can go wrong with one pair, and how the engines' errors are told apart.

use regorus::rvm::vm::VmError;
use regorus::LimitError;
use std::cell::RefCell;

/// The kind of a [`Fault`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// The pair took longer than its deadline.
    Deadline,
    /// The pair used more memory than it may.
    Memory,
    /// The rules took more instructions than they may.
    Instructions,
    /// A builtin function or an operator refused its operands.
    Builtin,
    /// A rule, a function or an object key has two values.
    Conflict,
    /// The engine panicked.
    Panic,
    /// Anything else that keeps a rule from having a value we can read.
    Evaluation,
}

impl FaultKind {
    /// The name that Python sees.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Deadline => "deadline",
            Self::Memory => "memory",
            Self::Instructions => "instructions",
            Self::Builtin => "builtin",
            Self::Conflict => "conflict",
            Self::Panic => "panic",
            Self::Evaluation => "evaluation",
        }
    }
}

/// The reason why a pair has no outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What kind of trouble it is.
    pub kind: FaultKind,
    /// One line for a person to read.
    pub message: String,
    /// Whether other pairs may be to blame, so that judging the pair alone is worth while.
    pub shared: bool,
}

/// What the interpreter says of rules, functions and keys with two values.
const CONFLICTS: [&str; 3] = ["multiple outputs", "generated multiple times", "conflicts with rule"];
/// Characters of a message; regorus puts whole values into some.
const LONGEST_MESSAGE: usize = 500;

impl Fault {
    /// A fault of the pair itself.
    #[must_use]
    pub fn new(kind: FaultKind, message: impl Into<String>) -> Self {
        let mut message = message.into();
        if let Some((end, _)) = message.char_indices().nth(LONGEST_MESSAGE) {
            message.replace_range(end.., " ...");
        }
        Self { kind, message, shared: false }
    }

    /// Reads an error of the RVM, which an error raised by a shielded builtin hides behind.
    #[must_use]
    pub fn from_vm(error: &VmError) -> Self {
        if let Some(fault) = take_raised() {
            return fault;
        }
        let message = error.to_string();
        match error {
            VmError::TimeLimitExceeded { .. } => Self::new(FaultKind::Deadline, message),
            VmError::InstructionLimitExceeded { .. } => Self::new(FaultKind::Instructions, message),
            VmError::MemoryBudgetExceeded { .. } => Self::new(FaultKind::Memory, message),
            VmError::MemoryLimitExceeded { .. } => Self { shared: true, ..Self::new(FaultKind::Memory, message) },
            VmError::RegexSizeLimitExceeded { .. } | VmError::NumericOverflow { .. } => {
                Self::new(FaultKind::Builtin, message)
            }
            _ => Self::new(FaultKind::Evaluation, message),
        }
    }

    /// Reads an error of the interpreter, which loses its type when it passes through a function.
    #[must_use]
    pub fn from_interpreter(error: &anyhow::Error) -> Self {
        if let Some(fault) = take_raised() {
            return fault;
        }
        let text = error.to_string();
        let message = one_line(&text);
        let limit = error.downcast_ref::<LimitError>();
        if matches!(limit, Some(LimitError::TimeLimitExceeded { .. })) || text.contains("exceeded time limit") {
            Self::new(FaultKind::Deadline, message)
        } else if matches!(limit, Some(LimitError::MemoryLimitExceeded { .. }))
            || text.contains("exceeded memory limit")
        {
            Self { shared: true, ..Self::new(FaultKind::Memory, message) }
        } else if CONFLICTS.iter().any(|said| text.contains(said)) {
            Self::new(FaultKind::Conflict, message)
        } else if text.contains("could not find function") || text.contains("internal error") {
            Self::new(FaultKind::Evaluation, message)
        } else {
            Self::new(FaultKind::Builtin, message)
        }
    }
}

thread_local! {
    /// The fault that a shielded builtin raised on this thread and that its engine has not reported yet.
    static RAISED: RefCell<Option<Fault>> = const { RefCell::new(None) };
}

/// Notes a fault and gives the error that neither engine absorbs inside a rule.
pub fn raise(fault: Fault) -> anyhow::Error {
    RAISED.with_borrow_mut(|slot| {
        slot.get_or_insert(fault);
    });
    let never = std::time::Duration::ZERO;
    LimitError::TimeLimitExceeded { elapsed: never, limit: never }.into()
}

/// Takes the fault that was raised on this thread, if any.
pub fn take_raised() -> Option<Fault> {
    RAISED.take()
}

/// Puts a regorus message, which draws the source below the place, onto one line: `place: text`.
#[must_use]
pub fn one_line(message: &str) -> String {
    let place = message.lines().find_map(|line| line.trim_start().strip_prefix("--> "));
    let text = message.lines().find_map(|line| line.strip_prefix("error: "));
    match (place, text) {
        (Some(place), Some(text)) if place.starts_with("<builtin>") => text.to_owned(),
        (Some(place), Some(text)) => format!("{}: {text}", place.trim()),
        _ => message.split_whitespace().collect::<Vec<_>>().join(" "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_regorus_becomes_one_line() {
        let drawn = "\n--> a.rego:3:5\n  |\n3 | x := 1\n  |     ^\nerror: bad thing";
        assert_eq!(one_line(drawn), "a.rego:3:5: bad thing");
        assert_eq!(one_line("plain\n text"), "plain text");
    }

    #[test]
    fn the_first_raised_fault_wins_over_the_error_that_carries_it() {
        let carrier = raise(Fault::new(FaultKind::Builtin, "first"));
        drop(raise(Fault::new(FaultKind::Conflict, "second")));
        assert_eq!(Fault::from_interpreter(&carrier), Fault::new(FaultKind::Builtin, "first"));
        assert_eq!(Fault::from_interpreter(&carrier).kind, FaultKind::Deadline);
    }
}
