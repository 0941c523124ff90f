//! Resolves names and checks types, from syntax to operations.

mod arithmetic;
mod comparison;
mod control;
mod conversion;
mod floating;
mod logic;
mod memory;
mod movement;
mod reader;
mod scope;
mod warp;

use crate::error::Error;
use crate::operation::{Guard, Instruction, Operation};
use crate::program::{Kernel, Program};
use crate::scalar::Scalar;
use crate::syntax::{self, Module, Space, Statement};
use reader::Reader;
use scope::{Layout, Scopes};

/// Decodes a whole module.
pub(crate) fn decode(module: &Module<'_>) -> Result<Program, Error> {
    check_version(module)?;
    let mut layouts = ModuleLayouts::default();
    let mut scopes = Scopes::default();
    for variable in &module.variables {
        layouts.place(variable, &mut scopes)?;
    }
    let mut kernels: Vec<Kernel> = Vec::new();
    for entry in &module.entries {
        if kernels.iter().any(|kernel| kernel.name == entry.name) {
            let message = format!("entry `{}` is declared twice", entry.name);
            return Err(Error::typing(entry.line, message));
        }
        let (kernel, grown) = decode_entry(module, entry, &scopes, layouts)?;
        layouts = grown;
        kernels.push(kernel);
    }
    Ok(Program {
        kernels,
        constants: layouts.constants.variables,
        globals: layouts.globals.variables,
    })
}

/// The first `.version` that supports each target.
const FIRST_VERSIONS: [(u32, (u32, u32)); 12] = [
    (50, (4, 0)),
    (60, (5, 0)),
    (70, (6, 0)),
    (72, (6, 1)),
    (75, (6, 3)),
    (80, (7, 0)),
    (86, (7, 1)),
    (87, (7, 4)),
    (89, (7, 8)),
    (90, (7, 8)),
    (100, (8, 6)),
    (120, (8, 7)),
];

fn check_version(module: &Module<'_>) -> Result<(), Error> {
    let first = FIRST_VERSIONS
        .iter()
        .rev()
        .find(|(target, _)| *target <= module.target);
    match first {
        Some((_, version)) if *version <= module.version => Ok(()),
        Some((_, (major, minor))) => Err(Error::typing(
            1,
            format!("sm_{} needs .version {major}.{minor}", module.target),
        )),
        None => Err(Error::typing(1, format!("sm_{} is too old", module.target))),
    }
}

/// Module variables by state space.
struct ModuleLayouts {
    constants: Layout,
    globals: Layout,
    shared: Layout,
    dynamic_shared: Vec<(String, usize)>,
}

impl Default for ModuleLayouts {
    fn default() -> ModuleLayouts {
        ModuleLayouts {
            constants: Layout::new(Space::Const),
            globals: Layout::new(Space::Global),
            shared: Layout::new(Space::Shared),
            dynamic_shared: Vec::new(),
        }
    }
}

impl ModuleLayouts {
    fn place<'a>(
        &mut self,
        variable: &syntax::Variable<'a>,
        scopes: &mut Scopes<'a>,
    ) -> Result<(), Error> {
        let address = match variable.space {
            Space::Const => self.constants.place_zeroed(variable),
            Space::Global => self.globals.place_zeroed(variable),
            Space::Shared if variable.is_dynamic => {
                let dynamic = (variable.name.to_owned(), variable.alignment);
                self.dynamic_shared.push(dynamic);
                0
            }
            Space::Shared => self.shared.place(variable),
            _ => {
                let message = "this state space has no module variables";
                return Err(Error::typing(variable.line, message));
            }
        };
        scopes.declare_symbol(variable.name, variable.space, address, variable.line)
    }
}

/// Maximum static shared memory of a block.
const MAX_SHARED: usize = 48 * 1024;

fn decode_entry<'a>(
    module: &Module<'a>,
    entry: &syntax::Entry<'a>,
    outer: &Scopes<'a>,
    layouts: ModuleLayouts,
) -> Result<(Kernel, ModuleLayouts), Error> {
    let mut decoder = Decoder {
        version: module.version,
        target: module.target,
        scopes: outer.clone(),
        shared: layouts.shared.clone(),
        local: Layout::new(Space::Local),
        params: Layout::new(Space::Param),
        layouts,
        dynamic_shared: None,
        instructions: Vec::new(),
        texts: Vec::new(),
        jumps: Vec::new(),
    };
    decoder.scopes.open();
    decoder.declare_params(&entry.params)?;
    decoder.place_dynamic(entry)?;
    for statement in &entry.body {
        decoder.statement(statement)?;
    }
    decoder.finish(entry)
}

/// State while an entry is decoded.
pub(crate) struct Decoder<'a> {
    version: (u32, u32),
    target: u32,
    scopes: Scopes<'a>,
    shared: Layout,
    local: Layout,
    params: Layout,
    layouts: ModuleLayouts,
    /// The address of the dynamic shared arrays, when there are any.
    dynamic_shared: Option<u64>,
    instructions: Vec<Instruction>,
    texts: Vec<String>,
    jumps: Vec<Jump<'a>>,
}

/// A branch whose labels are resolved at the end.
struct Jump<'a> {
    instruction: usize,
    scope: usize,
    line: u32,
    labels: Vec<&'a str>,
}

impl<'a> Decoder<'a> {
    fn declare_params(&mut self, params: &[syntax::Variable<'a>]) -> Result<(), Error> {
        for param in params {
            let address = self.params.place(param);
            self.scopes
                .declare_symbol(param.name, Space::Param, address, param.line)?;
        }
        Ok(())
    }

    /// Places the dynamic shared arrays after all static variables of the entry.
    fn place_dynamic(&mut self, entry: &syntax::Entry<'a>) -> Result<(), Error> {
        let mut shared = self.shared.clone();
        for statement in &entry.body {
            if let Statement::Variable(variable) = statement
                && variable.space == Space::Shared
            {
                shared.place(variable);
            }
        }
        let total: usize = shared.variables.iter().map(|known| known.bytes).sum();
        if total > MAX_SHARED {
            let message = format!("{total} bytes of shared memory, the maximum is {MAX_SHARED}");
            return Err(Error::typing(entry.line, message));
        }
        let dynamic = &self.layouts.dynamic_shared;
        let alignment = dynamic.iter().map(|(_, alignment)| *alignment).max();
        let address = shared.next_address(alignment.unwrap_or(1));
        for (name, _) in dynamic {
            self.scopes.set_address(name, address);
        }
        self.dynamic_shared = alignment.map(|_| address);
        Ok(())
    }

    fn statement(&mut self, statement: &Statement<'a>) -> Result<(), Error> {
        match statement {
            Statement::Registers {
                line,
                scalar,
                name,
                count,
            } => self.scopes.declare_registers(name, *count, *scalar, *line),
            Statement::Variable(variable) => self.variable(variable),
            Statement::Label { line, name } => {
                let target = self.instructions.len() as u32;
                self.scopes.declare_label(name, target, *line)
            }
            Statement::BranchTargets {
                line,
                name,
                targets,
            } => self.scopes.declare_targets(name, targets, *line),
            Statement::Instruction(instruction) => self
                .instruction(instruction)
                .map_err(|error| error.at_instruction(instruction.line, instruction.text)),
            Statement::Open => {
                self.scopes.open();
                Ok(())
            }
            Statement::Close => {
                self.scopes.close();
                Ok(())
            }
        }
    }

    fn variable(&mut self, variable: &syntax::Variable<'a>) -> Result<(), Error> {
        let address = match variable.space {
            Space::Shared => self.shared.place(variable),
            Space::Local => self.local.place(variable),
            Space::Const => self.layouts.constants.place_zeroed(variable),
            Space::Global => self.layouts.globals.place_zeroed(variable),
            Space::Generic | Space::Param => {
                let message = "this state space has no variables within an entry";
                return Err(Error::typing(variable.line, message));
            }
        };
        self.scopes
            .declare_symbol(variable.name, variable.space, address, variable.line)
    }

    fn instruction(&mut self, instruction: &syntax::Instruction<'a>) -> Result<(), Error> {
        let guard = self.guard(instruction)?;
        let operation = self.operation(instruction)?;
        self.instructions.push(Instruction {
            line: instruction.line,
            guard,
            operation,
        });
        self.texts.push(instruction.text.to_owned());
        Ok(())
    }

    fn guard(&mut self, instruction: &syntax::Instruction<'a>) -> Result<Option<Guard>, Error> {
        let Some(guard) = instruction.guard else {
            return Ok(None);
        };
        match self.scopes.register(guard.register) {
            Some((slot, Scalar::PREDICATE)) => Ok(Some(Guard {
                slot,
                is_negated: guard.is_negated,
            })),
            _ => Err(Error::typing(
                instruction.line,
                format!("guard `{}` is no predicate", guard.register),
            )),
        }
    }

    fn operation(&mut self, instruction: &syntax::Instruction<'a>) -> Result<Operation, Error> {
        let decode: for<'d, 'b> fn(Reader<'d, 'b>) -> Result<Operation, Error> =
            match instruction.opcode {
                "mov" => movement::mov,
                "cvta" => movement::cvta,
                "isspacep" => movement::isspacep,
                "add" | "sub" => arithmetic::add,
                "addc" | "subc" => arithmetic::add_with_carry,
                "mul" => arithmetic::mul,
                "mad" => arithmetic::mad,
                "madc" => arithmetic::mad_with_carry,
                "mul24" | "mad24" => arithmetic::mul24,
                "sad" => arithmetic::sad,
                "div" => arithmetic::div,
                "rem" => arithmetic::rem,
                "abs" | "neg" => arithmetic::abs,
                "min" | "max" => arithmetic::min,
                "dp4a" | "dp2a" => arithmetic::dot,
                "and" | "or" | "xor" | "not" | "cnot" => logic::boolean,
                "lop3" => logic::lop3,
                "shl" | "shr" => logic::shift,
                "shf" => logic::funnel,
                "prmt" => logic::prmt,
                "bfe" | "bfi" => logic::field,
                "bfind" => logic::bfind,
                "brev" | "clz" | "popc" => logic::count,
                "fma" => floating::fma,
                "rcp" | "sqrt" => floating::root,
                "rsqrt" => floating::rsqrt,
                "ex2" | "lg2" | "sin" | "cos" | "tanh" => floating::transcendental,
                "copysign" => floating::copysign,
                "testp" => floating::testp,
                "setp" => comparison::setp,
                "set" => comparison::set,
                "selp" => comparison::selp,
                "slct" => comparison::slct,
                "cvt" => conversion::cvt,
                "ld" => memory::ld,
                "st" => memory::st,
                "atom" | "red" => memory::atom,
                "prefetch" | "prefetchu" => memory::prefetch,
                "fence" | "membar" => memory::fence,
                "bar" | "barrier" => warp::bar,
                "shfl" => warp::shfl,
                "vote" => warp::vote,
                "redux" => warp::redux,
                "match" => warp::match_any,
                "elect" => warp::elect,
                "activemask" => warp::activemask,
                "nanosleep" => control::nanosleep,
                "bra" => control::bra,
                "brx" => control::brx,
                "ret" | "exit" | "trap" => control::end,
                other => {
                    let message = format!("`{other}` is no instruction of the covered subset");
                    return Err(Error::parse(instruction.line, message));
                }
            };
        decode(Reader::new(self, instruction))
    }

    fn finish(mut self, entry: &syntax::Entry<'a>) -> Result<(Kernel, ModuleLayouts), Error> {
        for jump in std::mem::take(&mut self.jumps) {
            self.resolve(&jump)?;
        }
        self.instructions.push(Instruction {
            line: entry.line,
            guard: None,
            operation: Operation::Exit,
        });
        self.texts.push("the end of the entry".to_owned());
        let kernel = Kernel {
            name: entry.name.to_owned(),
            params: self.params.variables,
            shared: self.shared.variables,
            local: self.local.variables,
            dynamic_shared: self.dynamic_shared,
            max_threads: entry.max_threads,
            required_block: entry.required_block,
            slots: self.scopes.registers.len(),
            registers: self.scopes.registers,
            instructions: self.instructions,
            texts: self.texts,
        };
        Ok((kernel, self.layouts))
    }

    fn resolve(&mut self, jump: &Jump<'a>) -> Result<(), Error> {
        let targets: Result<Vec<u32>, Error> = jump
            .labels
            .iter()
            .map(|label| {
                self.scopes.label(jump.scope, label).ok_or_else(|| {
                    let message = format!("label `{label}` is not defined");
                    Error::typing(jump.line, message)
                        .at_instruction(jump.line, &self.texts[jump.instruction])
                })
            })
            .collect();
        let targets = targets?;
        match &mut self.instructions[jump.instruction].operation {
            Operation::Branch { target } => *target = targets[0],
            Operation::BranchIndexed { targets: slots, .. } => *slots = targets.into(),
            other => unreachable!("a jump was recorded for {other:?}"),
        }
        Ok(())
    }
}
