//! The Python module `policyeng._native`; its stub is `policyeng/_native.pyi`.

use crate::bench::{Bench, Limits, Outcome, Pair};
use crate::changing::{Entry, Splice};
use crate::policy::PolicyRules;
use crate::stack::on_a_deep_stack;
use crate::upgrade::upgraded;
use crate::{InputForm, Role};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyList};
use regorus::Value;
use std::collections::HashSet;
use std::time::Duration;

/// A snapshot, parsed once.
#[pyclass(frozen, module = "policyeng._native")]
struct Documents(crate::Documents);

#[pymethods]
impl Documents {
    #[new]
    fn new(py: Python<'_>, snapshot: PyBackedBytes) -> PyResult<Self> {
        py.detach(|| crate::Documents::parse(&snapshot)).map(Self).map_err(PyValueError::new_err)
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// A changed copy: splices are (collection, start, number removed, JSON of what comes), entries (path, JSON or None).
    fn changed(&self, py: Python<'_>, splices: Vec<GivenSplice>, entries: Vec<GivenEntry>) -> PyResult<Self> {
        let make = || {
            let entries: Vec<Entry<'_>> = entries.iter().map(entry).collect();
            self.0.changed(&splices.iter().map(splice).collect::<Vec<_>>(), &entries)
        };
        py.detach(make).map(Self).map_err(PyValueError::new_err)
    }
}

type GivenSplice = (String, usize, usize, Vec<PyBackedBytes>);
type GivenEntry = (Vec<String>, Option<PyBackedBytes>);

fn splice((name, start, removed, added): &GivenSplice) -> Splice<'_> {
    Splice { name, start: *start, removed: *removed, added: added.iter().map(|text| &**text).collect() }
}

fn entry((path, value): &GivenEntry) -> Entry<'_> {
    (path.iter().map(String::as_str).collect(), value.as_ref().map(|text| &**text))
}

/// The parameters of all policies, parsed once.
#[pyclass(frozen, module = "policyeng._native")]
struct Parameters(Vec<Value>);

#[pymethods]
impl Parameters {
    #[new]
    fn new(texts: Vec<PyBackedBytes>) -> PyResult<Self> {
        texts.iter().map(|text| parse(text)).collect::<PyResult<_>>().map(Self)
    }
}

/// Parameters as they are made once, or as texts for this once.
#[derive(FromPyObject)]
enum GivenParameters<'py> {
    Made(PyRef<'py, Parameters>),
    Texts(Vec<PyBackedBytes>),
}

/// A bundle, compiled once.
#[pyclass(frozen, module = "policyeng._native")]
struct Program(crate::Program);

#[pymethods]
impl Program {
    #[new]
    #[pyo3(signature = (modules, facts, policies, interpreter = false, rego_v0 = HashSet::new(), forms = Vec::new()))]
    fn new(
        py: Python<'_>,
        modules: Vec<(String, String)>,
        facts: PyBackedBytes,
        policies: Vec<(String, Vec<(String, String)>)>,
        interpreter: bool,
        rego_v0: HashSet<String>,
        forms: Vec<String>,
    ) -> PyResult<Self> {
        let policies = named_policies(policies).map_err(PyValueError::new_err)?;
        let forms = named_forms(&forms).map_err(PyValueError::new_err)?;
        let compile = || {
            let modules = on_a_deep_stack(|| upgraded(modules, &rego_v0))?;
            Ok::<_, String>(crate::Program::compile(&modules, &facts, policies, interpreter)?.with_forms(&forms))
        };
        py.detach(compile).map(Self).map_err(PyValueError::new_err)
    }

    #[staticmethod]
    fn load(
        py: Python<'_>,
        stored: Vec<PyBackedBytes>,
        facts: PyBackedBytes,
        policies: Vec<(String, Vec<(String, String)>)>,
    ) -> PyResult<Self> {
        let policies = named_policies(policies).map_err(PyValueError::new_err)?;
        py.detach(|| crate::Program::load(&stored, &facts, policies)).map(Self).map_err(PyValueError::new_err)
    }

    fn dump<'py>(&self, py: Python<'py>) -> Option<Vec<Bound<'py, PyBytes>>> {
        Some(self.0.stored()?.iter().map(|program| PyBytes::new(py, program)).collect())
    }

    #[getter]
    fn engines(&self) -> Vec<(&'static str, &str)> {
        self.0.engines()
    }

    #[pyo3(signature = (documents, pairs, parameters, as_of, *, threads = 1, deadline_ms = 1000, memory_mb = 256,
                        instructions = 50_000_000))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of the Python method")]
    fn judge<'py>(
        &self,
        py: Python<'py>,
        documents: &Documents,
        pairs: Vec<(usize, usize, i64)>,
        parameters: GivenParameters<'py>,
        as_of: &str,
        threads: usize,
        deadline_ms: u64,
        memory_mb: u64,
        instructions: usize,
    ) -> PyResult<Bound<'py, PyList>> {
        let limits = Limits {
            deadline: Duration::from_millis(deadline_ms),
            memory: memory_mb.saturating_mul(1 << 20),
            instructions,
        };
        let parsed;
        let parameters = match &parameters {
            GivenParameters::Made(made) => &made.0,
            GivenParameters::Texts(texts) => {
                parsed = texts.iter().map(|text| parse(text)).collect::<PyResult<Vec<_>>>()?;
                &parsed
            }
        };
        let outcomes = py.detach(|| {
            let pairs = pairs.into_iter().map(pair).collect::<PyResult<Vec<_>>>()?;
            let bench = Bench { program: &self.0, documents: &documents.0, parameters, as_of, limits };
            crate::judge(bench, &pairs, threads).map_err(PyIndexError::new_err)
        })?;
        let outcomes = outcomes.into_iter().map(|outcome| to_python(py, outcome)).collect::<PyResult<Vec<_>>>()?;
        PyList::new(py, outcomes)
    }
}

fn named_policies(policies: Vec<(String, Vec<(String, String)>)>) -> Result<Vec<PolicyRules>, String> {
    policies.into_iter().map(|(id, roles)| Ok((id, named_roles(roles)?))).collect()
}

fn named_forms(forms: &[String]) -> Result<Vec<InputForm>, String> {
    forms.iter().map(|name| InputForm::parse(name)).collect()
}

fn named_roles(roles: Vec<(String, String)>) -> Result<Vec<(Role, String)>, String> {
    roles.into_iter().map(|(role, rule)| Ok((Role::parse(&role)?, rule))).collect()
}

fn pair((policy, subject, workspace): (usize, usize, i64)) -> PyResult<Pair> {
    let workspace = match workspace {
        -1 => None,
        index => Some(usize::try_from(index).map_err(|_| PyIndexError::new_err("a workspace index below -1"))?),
    };
    Ok(Pair { policy, subject, workspace })
}

fn parse(text: &[u8]) -> PyResult<Value> {
    let text = std::str::from_utf8(text).map_err(|error| PyValueError::new_err(error.to_string()))?;
    let value = crate::memory::unbounded(|| Value::from_json_str(text));
    let value = value.map_err(|error| PyValueError::new_err(format!("parameters: {error}")))?;
    value.as_object().map_err(|_| PyValueError::new_err("parameters are not a JSON object"))?;
    Ok(value)
}

fn to_python(py: Python<'_>, outcome: Outcome) -> PyResult<Bound<'_, PyAny>> {
    match outcome {
        Outcome::Nothing => Ok(py.None().into_bound(py)),
        Outcome::NotApplicable => Ok(false.into_pyobject(py)?.to_owned().into_any()),
        Outcome::Findings(json) => Ok(PyBytes::new(py, json.as_bytes()).into_any()),
        Outcome::Fault(fault) => Ok((fault.kind.name(), fault.message).into_pyobject(py)?.into_any()),
    }
}

/// Validates a JSON document strictly: None when it is good, else (kind, JSON Pointer, line, column).
#[pyfunction]
#[pyo3(signature = (document, max_depth = 128))]
fn check_json(
    py: Python<'_>,
    document: PyBackedBytes,
    max_depth: usize,
) -> Option<(&'static str, String, usize, usize)> {
    let refusal = py.detach(|| crate::check::check(&document, max_depth))?;
    Some((refusal.kind, refusal.pointer, refusal.line, refusal.column))
}

/// Line and column of the value at each JSON Pointer, or None.
#[pyfunction]
fn locate(py: Python<'_>, document: PyBackedBytes, pointers: Vec<String>) -> Vec<Option<(usize, usize)>> {
    py.detach(|| crate::locate::locate(&document, &pointers))
}

/// A module of somebody else's: (Rego v0, package, rules as (name, form, line), what it reads of `input` and `data`).
#[pyfunction]
#[pyo3(signature = (path, source, rego_v0 = None))]
#[expect(clippy::type_complexity, reason = "the tuple that the stub names")]
fn outline(
    py: Python<'_>,
    path: &str,
    source: &str,
    rego_v0: Option<bool>,
) -> PyResult<(bool, String, Vec<(String, &'static str, u64)>, Vec<String>)> {
    let outline = py.detach(|| crate::outline::outline(path, source, rego_v0)).map_err(PyValueError::new_err)?;
    let rules = outline.rules.into_iter().map(|rule| (rule.name, rule.form, rule.line)).collect();
    Ok((outline.v0, outline.package, rules, outline.reads.into_iter().collect()))
}

/// The modules with those in Rego v0 written as v1, and one more that answers for the builtins that v1 dropped.
#[pyfunction]
fn as_v1(py: Python<'_>, modules: Vec<(String, String)>, rego_v0: HashSet<String>) -> PyResult<Vec<(String, String)>> {
    py.detach(|| on_a_deep_stack(|| upgraded(modules, &rego_v0))).map_err(PyValueError::new_err)
}

/// The rules of a module as JSON, every node with its place.
#[pyfunction]
#[pyo3(signature = (path, source, rego_v0 = false))]
fn syntax<'py>(py: Python<'py>, path: &str, source: &str, rego_v0: bool) -> PyResult<Bound<'py, PyBytes>> {
    let tree = py.detach(|| crate::syntax::syntax(path, source, rego_v0)).map_err(PyValueError::new_err)?;
    Ok(PyBytes::new(py, tree.as_bytes()))
}

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::worker::silence_panics();
    module.add("ENGINE_VERSION", crate::ENGINE_VERSION)?;
    module.add("BUILD", crate::BUILD)?;
    module.add("HOST_BUILTINS", crate::ast::HOST.to_vec())?;
    module.add_class::<Documents>()?;
    module.add_class::<Parameters>()?;
    module.add_class::<Program>()?;
    module.add_function(wrap_pyfunction!(check_json, module)?)?;
    module.add_function(wrap_pyfunction!(locate, module)?)?;
    module.add_function(wrap_pyfunction!(outline, module)?)?;
    module.add_function(wrap_pyfunction!(as_v1, module)?)?;
    module.add_function(wrap_pyfunction!(syntax, module)?)?;
    Ok(())
}
