//! The shield around builtins: their errors end the pair, on both engines.
//!
//! The RVM takes an error inside a rule for "this body does not hold". Only errors of limits pass, so a shielded
//! builtin notes its error and fails with one of those. regorus keeps the types of a builtin's first two arguments to
//! itself; they are inferred here and never named.

use crate::fault::{one_line, raise, take_raised};
use crate::{admission, corrections, Fault, FaultKind};
use regorus::languages::rego::compiler::Compiler;
use regorus::rvm::instructions::BuiltinCallParams;
use regorus::rvm::program::BuiltinInfo;
use regorus::rvm::{Instruction, Program, RegoVM};
use regorus::{Engine, LimitError, Rc, Value};
use std::any::Any;
use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// A builtin as the RVM calls it: place, expressions, values, whether to be strict.
type Builtin<S, E> = for<'a, 'b, 'c> fn(&'a S, &'b [E], &'c [Value], bool) -> anyhow::Result<Value>;

/// A builtin under its shield.
struct Shielded {
    name: String,
    call: Box<dyn Any + Send + Sync>,
}

/// Builtins that are undefined in OPA too for operands that they take; where others are, OPA has an error.
const MAY_BE_UNDEFINED: [&str; 3] = ["max", "min", "uuid.parse"];

/// A function pointer carries no state, so each shielded builtin has a slot and a function that knows its number.
const SLOTS: usize = 256;
static SHIELDED: [OnceLock<Shielded>; SLOTS] = [const { OnceLock::new() }; SLOTS];

fn call<const SLOT: usize, S: 'static, E: 'static>(
    place: &S,
    expressions: &[E],
    values: &[Value],
    _strict: bool,
) -> anyhow::Result<Value> {
    let Some(shielded) = SHIELDED[SLOT].get() else {
        return Err(raise(Fault::new(FaultKind::Evaluation, "a builtin without a slot")));
    };
    let Some(original) = shielded.call.downcast_ref::<Builtin<S, E>>() else {
        return Err(raise(Fault::new(FaultKind::Evaluation, "a builtin of another shape")));
    };
    if let Err(refusal) = admission::admit(&shielded.name, values) {
        return Err(raise(Fault::new(FaultKind::Builtin, format!("{}: {refusal}", shielded.name))));
    }
    if let Some(answer) = corrections::answer(&shielded.name, values) {
        return Ok(answer);
    }
    let operands = corrections::operands(&shielded.name, values);
    let answer = original(place, expressions, operands.as_deref().unwrap_or(values), true)
        .map_err(|error| faulted(&shielded.name, error))?;
    if answer == Value::Undefined && !values.contains(&Value::Undefined) && !MAY_BE_UNDEFINED.contains(&&*shielded.name)
    {
        let message = format!("{}: the operands are not as they should be", shielded.name);
        return Err(raise(Fault::new(FaultKind::Builtin, message)));
    }
    Ok(corrections::rewritten(&shielded.name, values, answer))
}

fn faulted(name: &str, error: anyhow::Error) -> anyhow::Error {
    match error.downcast_ref::<LimitError>() {
        Some(LimitError::RegexSizeLimitExceeded { .. }) | None => {
            raise(Fault::new(FaultKind::Builtin, format!("{name}: {}", one_line(&error.to_string()))))
        }
        Some(_) => error,
    }
}

macro_rules! row {
    ($high:literal, $($low:literal)*) => { [$(call::<{ $high * 16 + $low }, S, E> as Builtin<S, E>),*] };
}
macro_rules! rows {
    ($($high:literal)*) => { [$(row!($high, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15)),*] };
}

fn shields<S: 'static, E: 'static>() -> [[Builtin<S, E>; 16]; SLOTS / 16] {
    rows!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15)
}

/// Shields the builtins of a program and turns its arithmetic into shielded builtins.
///
/// # Errors
/// A reason when the program cannot be shielded.
pub fn shield(program: &mut Program) -> Result<(), String> {
    let names: Vec<String> = program.builtin_info_table.iter().map(|info| info.name.clone()).collect();
    cover(&names, &mut program.resolved_builtins)?;
    let first = program.builtin_info_table.len();
    for operator in ["+", "-", "*", "/", "%"] {
        program.builtin_info_table.push(BuiltinInfo { name: operator.to_owned(), num_args: 2 });
    }
    add_arithmetic(&mut program.resolved_builtins);
    replace_arithmetic(program, first)
}

fn cover<S: 'static, E: 'static>(names: &[String], table: &mut [(Builtin<S, E>, u8)]) -> Result<(), String> {
    let shields = shields::<S, E>();
    for (name, (builtin, _)) in names.iter().zip(table) {
        let original = *builtin;
        let slot = SHIELDED.iter().position(|slot| {
            let taken = slot.get_or_init(|| Shielded { name: name.clone(), call: Box::new(original) });
            taken.name == *name
        });
        let slot = slot.ok_or_else(|| format!("more than {SLOTS} builtins are in use"))?;
        *builtin = shields[slot / 16][slot % 16];
    }
    Ok(())
}

fn replace_arithmetic(program: &mut Program, first: usize) -> Result<(), String> {
    for instruction in &mut program.instructions {
        let (operator, dest, left, right) = match *instruction {
            Instruction::Add { dest, left, right } => (0, dest, left, right),
            Instruction::Sub { dest, left, right } => (1, dest, left, right),
            Instruction::Mul { dest, left, right } => (2, dest, left, right),
            Instruction::Div { dest, left, right } => (3, dest, left, right),
            Instruction::Mod { dest, left, right } => (4, dest, left, right),
            _ => continue,
        };
        let too_many = |_| "too many builtins and operators".to_owned();
        let builtin_index = u16::try_from(first + operator).map_err(too_many)?;
        u16::try_from(program.instruction_data.builtin_call_params.len()).map_err(too_many)?;
        let params = BuiltinCallParams { dest, builtin_index, num_args: 2, args: [left, right, 0, 0, 0, 0, 0, 0] };
        *instruction = Instruction::builtin_call(program.instruction_data.add_builtin_call_params(params));
    }
    Ok(())
}

fn add_arithmetic<S: 'static, E: 'static>(table: &mut Vec<(Builtin<S, E>, u8)>) {
    let operators: [Builtin<S, E>; 5] =
        [operate::<'+', S, E>, operate::<'-', S, E>, operate::<'*', S, E>, operate::<'/', S, E>, operate::<'%', S, E>];
    table.extend(operators.map(|operator| (operator, 2)));
}

fn operate<const OPERATOR: char, S, E>(_: &S, _: &[E], values: &[Value], _: bool) -> anyhow::Result<Value> {
    let [left, right] = values else {
        return Err(raise(Fault::new(FaultKind::Evaluation, "an operator without two operands")));
    };
    arithmetic(OPERATOR, left, right)
        .map_err(|error| raise(Fault::new(FaultKind::Builtin, format!("`{OPERATOR}`: {error}"))))
}

fn arithmetic(operator: char, left: &Value, right: &Value) -> anyhow::Result<Value> {
    if let ('-', Value::Set(left), Value::Set(right)) = (operator, left, right) {
        return Ok(left.difference(right).into_value());
    }
    let (Value::Number(x), Value::Number(y)) = (left, right) else {
        anyhow::bail!("operands must be numbers");
    };
    let zero = right == &Value::from(0_u64);
    Ok(Value::from(match operator {
        '+' => x.add(y)?,
        '-' => x.sub(y)?,
        '*' => {
            admission::admit_product(left, right).map_err(anyhow::Error::msg)?;
            x.mul(y)?
        }
        '/' | '%' if zero => anyhow::bail!("divide by zero"),
        '/' => x.clone().divide(y)?,
        _ if !x.is_integer() || !y.is_integer() => anyhow::bail!("modulo on floating-point number"),
        _ => x.clone().modulo(y)?,
    }))
}

/// Puts the builtins of some names that need it under their shield in an interpreter, by way of one-call RVM programs.
///
/// # Errors
/// The error of regorus when such a program does not compile.
pub fn guard_interpreter(engine: &mut Engine, used: &HashSet<String>) -> anyhow::Result<()> {
    static PROGRAMS: Mutex<BTreeMap<&str, Arc<Program>>> = Mutex::new(BTreeMap::new());
    for (name, arity) in admission::GUARDED.into_iter().filter(|(name, _)| used.contains(*name)) {
        let mut programs = PROGRAMS.lock().unwrap_or_else(PoisonError::into_inner);
        let program = match programs.get(name) {
            Some(program) => Arc::clone(program),
            None => Arc::clone(programs.entry(name).or_insert(one_call(name, arity)?)),
        };
        let guard = move |values: Vec<Value>| run(&program, values);
        engine.add_extension(name.to_owned(), arity, Box::new(guard))?;
    }
    Ok(())
}

fn one_call(name: &str, arity: u8) -> anyhow::Result<Arc<Program>> {
    let arguments: Vec<String> = (0..arity).map(|index| format!("input[{index}]")).collect();
    let mut engine = Engine::new();
    engine
        .add_policy("guard.rego".to_owned(), format!("package guard\n\nout := {name}({})\n", arguments.join(", ")))?;
    let compiled = engine.compile_with_entrypoint(&Rc::from("data.guard.out"))?;
    let program = Compiler::compile_from_policy(&compiled, &["data.guard.out"])?;
    let mut program = Arc::unwrap_or_clone(program);
    shield(&mut program).map_err(anyhow::Error::msg)?;
    Ok(Arc::new(program))
}

fn run(program: &Arc<Program>, values: Vec<Value>) -> anyhow::Result<Value> {
    let mut machine = RegoVM::new();
    machine.load_program(Arc::clone(program));
    machine.set_data(Value::new_object())?;
    machine.set_input(Value::from(values));
    machine.execute_entry_point_by_index(0).map_err(|error| match take_raised() {
        Some(fault) => raise(fault),
        None => anyhow::Error::msg(error.to_string()),
    })
}
