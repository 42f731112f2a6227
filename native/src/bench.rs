//! What is to be judged, within which limits, and what came of it.

use crate::{Documents, Fault, Program};
use regorus::Value;
use std::time::Duration;

/// One policy and one subject to judge with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair {
    /// Index of the policy in the program.
    pub policy: usize,
    /// Index of the subject in the documents.
    pub subject: usize,
    /// Index of the subject's workspace in the documents, if it has one.
    pub workspace: Option<usize>,
}

/// What one pair may use; the crate's documentation says what holds each of them.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Wall-clock time.
    pub deadline: Duration,
    /// Bytes that the pair may allocate and keep.
    pub memory: u64,
    /// Instructions of the RVM, for an exception as many again.
    pub instructions: usize,
}

/// What came of one pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing denied and nothing unknown.
    Nothing,
    /// The policy does not apply to the subject.
    NotApplicable,
    /// JSON of `{"deny": [...], "unknown": [...]}`, at least one of them not empty.
    Findings(String),
    /// No outcome, and why.
    Fault(Fault),
}

/// Everything that the threads share.
#[derive(Debug, Clone, Copy)]
pub struct Bench<'a> {
    /// The compiled bundle.
    pub program: &'a Program,
    /// The snapshot.
    pub documents: &'a Documents,
    /// One value of `input.parameters` per policy.
    pub parameters: &'a [Value],
    /// The value of `input.as_of`.
    pub as_of: &'a str,
    /// What each pair may use.
    pub limits: Limits,
}
