//! One policy of a bundle: its rules and their roles, what its input is, and what judges it.

use std::sync::Arc;

/// What a rule of a policy says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Whether the policy applies at all.
    Applies,
    /// What is wrong.
    Deny,
    /// What cannot be decided.
    Unknown,
    /// Names of rules whose denials do not count; Conftest's.
    Exception,
}

/// What `input` is for a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InputForm {
    /// Resource, workspace, snapshot, parameters and time.
    #[default]
    Policy,
    /// The subject itself, as Conftest gives it.
    Document,
    /// The subject under review, and parameters, as Gatekeeper gives it.
    Review,
}

impl InputForm {
    /// Reads a form by its name in Python.
    ///
    /// # Errors
    /// A message for any other name.
    pub fn parse(name: &str) -> Result<Self, String> {
        match name {
            "policy" => Ok(Self::Policy),
            "document" => Ok(Self::Document),
            "review" => Ok(Self::Review),
            _ => Err(format!("`{name}` is no form of input: use policy, document or review")),
        }
    }
}

impl Role {
    /// Reads a role by its name in Python.
    ///
    /// # Errors
    /// A message for any other name.
    pub fn parse(name: &str) -> Result<Self, String> {
        match name {
            "applies" => Ok(Self::Applies),
            "deny" => Ok(Self::Deny),
            "unknown" => Ok(Self::Unknown),
            "exception" => Ok(Self::Exception),
            _ => Err(format!("`{name}` is no role: use applies, deny, unknown or exception")),
        }
    }
}

/// The engine that judges a policy.
#[derive(Debug)]
pub enum Engine {
    /// The virtual machine, with the policy's own shielded program.
    Rvm(Arc<regorus::rvm::Program>),
    /// The interpreter, and why.
    Interpreter(String),
}

/// One policy: its rules in the order of [`Role`], and its engine.
#[derive(Debug)]
pub struct Policy {
    /// The id in findings.
    pub id: String,
    /// Roles and the paths of their rules.
    pub roles: Vec<(Role, String)>,
    /// What judges it.
    pub engine: Engine,
    /// What its input is.
    pub form: InputForm,
}

/// The id of a policy and the paths of the rules that have a role in it.
pub type PolicyRules = (String, Vec<(Role, String)>);
