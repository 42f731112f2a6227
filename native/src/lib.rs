//! The native engine of policyeng: Rego judged in parallel, under limits, with the GIL released.
//!
//! A [`Program`] is a bundle compiled once, [`Documents`] is a snapshot parsed once, and [`judge()`] gives one
//! [`Outcome`] per (policy, subject) pair, on as many threads as asked. The crate is plain Rust; the feature
//! `extension-module` adds the module `policyeng._native`.
//!
//! # Two engines
//!
//! A policy runs on regorus's virtual machine (RVM) where that gives what OPA with `--strict-builtin-errors` gives, and
//! on regorus's interpreter elsewhere; [`Program::engines`] says which and why. Both read some Rego otherwise than OPA
//! without saying so (compared on OPA's own test cases), and each difference met is dealt with in one of these ways:
//!
//! * [`desugar`] writes the modules, for each engine, in a form that it reads as OPA does;
//! * [`builtins`] and [`arguments`] change the compiled program of the RVM, which by itself takes every error inside a
//!   rule for "does not hold" and calls functions with undefined arguments;
//! * [`corrections`] answers builtins that regorus answers otherwise, and [`operands`] makes errors of what they take and
//!   OPA does not;
//! * [`hazards`], [`safety`] and [`whole`] find what the RVM gets wrong and give those policies to the interpreter;
//! * [`ast`], [`calls`], [`recursion`] and [`whole`] refuse what neither engine gets right.
//!
//! `docs/conformance.md`, which `make conformance` writes, says what OPA's own cases give and what is known to be left.
//!
//! # What bounds a pair
//!
//! | limit        | RVM                                    | interpreter                                             |
//! |--------------|----------------------------------------|---------------------------------------------------------|
//! | deadline     | one per pair, looked at every 64 steps | one per pair, looked at every 64 steps                  |
//! | instructions | per pair, an exception has its own     | none: regorus counts none there, the deadline bounds it |
//! | memory       | the thread's own live bytes            | live bytes of all threads, then the pair alone          |
//!
//! The interpreter knows only a process-wide memory ceiling. While pairs run it stands at the bytes alive at the start
//! plus `memory_mb` for each thread; a pair that meets it is judged again, alone, under its own `memory_mb` (see
//! [`memory`]). No limit is looked at inside a single builtin, so [`admission`] refuses calls whose answer would be out
//! of proportion, on both engines. What is left unbounded is one comparison of two separately built values that each
//! name the same part twice, many levels deep: its time doubles with each level and nothing can interrupt it.

pub mod admission;
pub mod arguments;
pub mod ast;
pub mod bench;
pub mod builtins;
pub mod calls;
pub mod changing;
pub mod check;
pub mod compile;
pub mod corrections;
pub mod desugar;
pub mod documents;
pub mod fault;
pub mod hazards;
pub mod joined;
pub mod judge;
pub mod lanes;
pub mod locate;
pub mod memory;
pub mod names;
pub mod operands;
pub mod outline;
pub mod policy;
pub mod program;
pub mod recursion;
pub mod review;
pub mod safety;
pub mod scan;
pub mod stack;
pub mod storage;
pub mod syntax;
pub mod upgrade;
pub mod whole;
pub mod worker;

#[cfg(feature = "extension-module")]
mod python;

pub use bench::{Limits, Outcome, Pair};
pub use documents::Documents;
pub use fault::{Fault, FaultKind};
pub use judge::judge;
pub use policy::{InputForm, Role};
pub use program::Program;

/// The version of regorus that judges.
pub const ENGINE_VERSION: &str = "0.14.1";

/// Which sources this crate was built from: changes whenever they or a pinned dependency do.
pub const BUILD: &str = env!("POLICYENG_NATIVE_BUILD");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_that_of_the_dependency() {
        let pinned = format!("regorus = {{ version = \"={ENGINE_VERSION}\"");
        assert!(include_str!("../Cargo.toml").contains(&pinned), "{pinned}");
    }
}
