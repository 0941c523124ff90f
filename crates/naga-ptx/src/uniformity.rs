//! Refuses barriers and subgroup operations that some invocations of a workgroup may not reach.
//!
//! Conservative: a variable is uniform if every store to it is, in uniform control flow; what is
//! read from memory that invocations write is not uniform. Variables start as uniform and only
//! become non-uniform, so walking the entry point until nothing changes terminates; one more walk
//! then reports. Each call is analysed separately.

use std::collections::{HashMap, HashSet};
use std::ops::BitOrAssign;

use naga::{
    AddressSpace, Block, BuiltIn, Expression, Function, GlobalVariable, Handle, LocalVariable,
    Module, Span, Statement, StorageAccess, TypeInner,
};

use crate::error::{Error, ErrorKind, Result};

/// Checks an entry point.
pub(crate) fn check(module: &Module, index: usize) -> Result<()> {
    let entry = &module.entry_points[index].function;
    let mut analysis = Analysis {
        module,
        divergent: HashSet::new(),
        instances: HashMap::new(),
        report: false,
    };
    loop {
        let known = analysis.divergent.len();
        analysis.entry(entry)?;
        if analysis.divergent.len() == known {
            break;
        }
    }
    analysis.report = true;
    analysis.entry(entry)
}

/// A variable with tracked uniformity; locals belong to one inlined call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Variable {
    Local(usize, Handle<LocalVariable>),
    Private(Handle<GlobalVariable>),
}

/// The target of a pointer.
#[derive(Debug, Clone, Copy)]
enum PointerBase {
    Variable(Variable),
    /// Memory that no invocation writes.
    Constant,
    /// Memory that invocations share and write.
    Shared,
}

/// The uniformity of an expression.
#[derive(Debug, Clone, Copy)]
struct Fact {
    uniform: bool,
    target: Option<PointerBase>,
}

impl Fact {
    fn value(uniform: bool) -> Fact {
        Fact {
            uniform,
            target: None,
        }
    }
}

/// The exits that only some invocations take.
#[derive(Debug, Clone, Copy, Default)]
struct Divergence {
    breaks: bool,
    continues: bool,
    returns: bool,
}

impl Divergence {
    fn any(self) -> bool {
        self.breaks || self.continues || self.returns
    }
}

impl BitOrAssign for Divergence {
    fn bitor_assign(&mut self, other: Divergence) {
        self.breaks |= other.breaks;
        self.continues |= other.continues;
        self.returns |= other.returns;
    }
}

struct Analysis<'a> {
    module: &'a Module,
    divergent: HashSet<Variable>,
    /// Numbers of inlined calls, by the caller's number and the call's place in memory.
    instances: HashMap<(usize, usize), usize>,
    report: bool,
}

/// A function as called from one place.
struct Call<'a> {
    function: &'a Function,
    instance: usize,
    arguments: Vec<Fact>,
    facts: HashMap<Handle<Expression>, Fact>,
    result: bool,
}

impl<'a> Analysis<'a> {
    fn entry(&mut self, function: &'a Function) -> Result<()> {
        let arguments = function
            .arguments
            .iter()
            .map(|argument| Fact::value(argument.binding.as_ref().is_some_and(is_uniform)))
            .collect();
        let mut call = Call {
            function,
            instance: 0,
            arguments,
            facts: HashMap::new(),
            result: true,
        };
        self.block(&mut call, &function.body, true).map(|_| ())
    }

    /// Walks a block; `together` says whether all invocations enter it.
    fn block(
        &mut self,
        call: &mut Call<'a>,
        block: &'a Block,
        mut together: bool,
    ) -> Result<Divergence> {
        let mut divergence = Divergence::default();
        for (statement, &span) in block.span_iter() {
            divergence |= self.statement(call, statement, span, together)?;
            together &= !divergence.any();
        }
        Ok(divergence)
    }

    fn statement(
        &mut self,
        call: &mut Call<'a>,
        statement: &'a Statement,
        span: Span,
        together: bool,
    ) -> Result<Divergence> {
        let mut divergence = Divergence::default();
        match statement {
            Statement::Emit(range) => {
                for handle in range.clone() {
                    let fact = self.evaluate(call, handle);
                    call.facts.insert(handle, fact);
                }
            }
            Statement::Block(inner) => return self.block(call, inner, together),
            Statement::If {
                condition,
                accept,
                reject,
            } => {
                let inside = together && self.uniform(call, *condition);
                divergence |= self.block(call, accept, inside)?;
                divergence |= self.block(call, reject, inside)?;
            }
            Statement::Switch { selector, cases } => {
                let inside = together && self.uniform(call, *selector);
                for case in cases {
                    divergence |= self.block(call, &case.body, inside)?;
                }
                divergence.breaks = false;
            }
            Statement::Loop {
                body,
                continuing,
                break_if,
            } => return self.repeat(call, (body, continuing, *break_if), together),
            Statement::Break => divergence.breaks = !together,
            Statement::Continue => divergence.continues = !together,
            Statement::Return { value } => {
                divergence.returns = !together;
                let uniform = value.is_none_or(|value| self.uniform(call, value));
                call.result &= together && uniform;
            }
            Statement::Store { pointer, value } => {
                let uniform = together && self.uniform(call, *value);
                self.store(call, *pointer, uniform);
            }
            Statement::Call {
                function,
                arguments,
                result,
            } => {
                let uniform = self.call(call, statement, *function, arguments, together)?;
                if let Some(result) = result {
                    call.facts.insert(*result, Fact::value(uniform));
                }
            }
            Statement::ControlBarrier(_) => self.require(together, "barrier", span)?,
            Statement::WorkGroupUniformLoad { result, .. } => {
                self.require(together, "workgroupUniformLoad", span)?;
                call.facts.insert(*result, Fact::value(true));
            }
            Statement::SubgroupBallot { .. } => self.require(together, "subgroup ballot", span)?,
            Statement::SubgroupGather { .. } => {
                self.require(together, "subgroup shuffle or broadcast", span)?
            }
            Statement::SubgroupCollectiveOperation { .. } => {
                self.require(together, "subgroup operation", span)?
            }
            _ => {}
        }
        Ok(divergence)
    }

    fn require(&self, together: bool, what: &str, span: Span) -> Result<()> {
        if together || !self.report {
            Ok(())
        } else {
            Err(Error::new(ErrorKind::Uniformity, what, span))
        }
    }

    /// Invocations that left a loop early do not take part in its next iteration; `continue` only
    /// skips the rest of one.
    fn repeat(
        &mut self,
        call: &mut Call<'a>,
        (body, continuing, break_if): (&'a Block, &'a Block, Option<Handle<Expression>>),
        together: bool,
    ) -> Result<Divergence> {
        let report = std::mem::replace(&mut self.report, false);
        let once = self.round(call, (body, continuing, break_if), together)?;
        self.report = report;
        let inside = together && !once.breaks && !once.returns;
        let divergence = self.round(call, (body, continuing, break_if), inside)?;
        Ok(Divergence {
            returns: divergence.returns,
            ..Divergence::default()
        })
    }

    fn round(
        &mut self,
        call: &mut Call<'a>,
        (body, continuing, break_if): (&'a Block, &'a Block, Option<Handle<Expression>>),
        together: bool,
    ) -> Result<Divergence> {
        let mut divergence = self.block(call, body, together)?;
        let rejoined = together && !divergence.breaks && !divergence.returns;
        divergence |= self.block(call, continuing, rejoined)?;
        if let Some(condition) = break_if {
            divergence.breaks |= !(rejoined && self.uniform(call, condition));
        }
        Ok(divergence)
    }

    /// Follows a call; whether its result is uniform.
    fn call(
        &mut self,
        caller: &mut Call<'a>,
        statement: &'a Statement,
        callee: Handle<Function>,
        arguments: &[Handle<Expression>],
        together: bool,
    ) -> Result<bool> {
        let next = self.instances.len() + 1;
        let instance = *self
            .instances
            .entry((caller.instance, std::ptr::from_ref(statement) as usize))
            .or_insert(next);
        let arguments = arguments
            .iter()
            .map(|&argument| self.fact(caller, argument))
            .collect();
        let function = &self.module.functions[callee];
        let mut call = Call {
            function,
            instance,
            arguments,
            facts: HashMap::new(),
            result: true,
        };
        self.block(&mut call, &function.body, together)?;
        Ok(call.result && together)
    }

    fn store(&mut self, call: &Call<'a>, pointer: Handle<Expression>, uniform: bool) {
        let fact = self.fact(call, pointer);
        if let (Some(PointerBase::Variable(variable)), false) =
            (fact.target, uniform && fact.uniform)
        {
            self.divergent.insert(variable);
        }
    }

    fn uniform(&self, call: &Call<'a>, handle: Handle<Expression>) -> bool {
        self.fact(call, handle).uniform
    }

    fn fact(&self, call: &Call<'a>, handle: Handle<Expression>) -> Fact {
        match call.facts.get(&handle) {
            Some(fact) => *fact,
            None => self.evaluate(call, handle),
        }
    }

    fn evaluate(&self, call: &Call<'a>, handle: Handle<Expression>) -> Fact {
        let all = |handles: &[Handle<Expression>]| {
            handles.iter().all(|&handle| self.uniform(call, handle))
        };
        match call.function.expressions[handle] {
            Expression::Literal(_)
            | Expression::Constant(_)
            | Expression::ZeroValue(_)
            | Expression::ArrayLength(_) => Fact::value(true),
            Expression::FunctionArgument(number) => call.arguments[number as usize],
            Expression::LocalVariable(variable) => Fact {
                uniform: true,
                target: Some(PointerBase::Variable(Variable::Local(
                    call.instance,
                    variable,
                ))),
            },
            Expression::GlobalVariable(variable) => Fact {
                uniform: true,
                target: Some(self.global(variable)),
            },
            Expression::Access { base, index } => {
                let base = self.fact(call, base);
                Fact {
                    uniform: base.uniform && self.uniform(call, index),
                    ..base
                }
            }
            Expression::AccessIndex { base, index } => match self.input_member(call, base, index) {
                Some(uniform) => Fact::value(uniform),
                None => self.fact(call, base),
            },
            Expression::Load { pointer } => {
                let pointer = self.fact(call, pointer);
                let steady = match pointer.target {
                    Some(PointerBase::Variable(variable)) => !self.divergent.contains(&variable),
                    Some(PointerBase::Constant) => true,
                    Some(PointerBase::Shared) | None => false,
                };
                Fact::value(pointer.uniform && steady)
            }
            Expression::Compose { ref components, .. } => Fact::value(all(components)),
            Expression::Splat { value, .. } => Fact::value(all(&[value])),
            Expression::Swizzle { vector, .. } => Fact::value(all(&[vector])),
            Expression::Unary { expr, .. } | Expression::As { expr, .. } => {
                Fact::value(all(&[expr]))
            }
            Expression::Relational { argument, .. } => Fact::value(all(&[argument])),
            Expression::Binary { left, right, .. } => Fact::value(all(&[left, right])),
            Expression::Select {
                condition,
                accept,
                reject,
            } => Fact::value(all(&[condition, accept, reject])),
            Expression::Math {
                arg,
                arg1,
                arg2,
                arg3,
                ..
            } => {
                let others: Vec<_> = [arg1, arg2, arg3].into_iter().flatten().collect();
                Fact::value(all(&[arg]) && all(&others))
            }
            _ => Fact::value(false),
        }
    }

    /// For a member of a struct of the entry point's inputs, whether it is uniform.
    fn input_member(&self, call: &Call<'a>, base: Handle<Expression>, index: u32) -> Option<bool> {
        let Expression::FunctionArgument(number) = call.function.expressions[base] else {
            return None;
        };
        if call.instance != 0 {
            return None;
        }
        let TypeInner::Struct { ref members, .. } =
            self.module.types[call.function.arguments[number as usize].ty].inner
        else {
            return None;
        };
        members[index as usize].binding.as_ref().map(is_uniform)
    }

    fn global(&self, handle: Handle<GlobalVariable>) -> PointerBase {
        match self.module.global_variables[handle].space {
            AddressSpace::Private => PointerBase::Variable(Variable::Private(handle)),
            AddressSpace::Uniform => PointerBase::Constant,
            AddressSpace::Storage { access } if !access.contains(StorageAccess::STORE) => {
                PointerBase::Constant
            }
            _ => PointerBase::Shared,
        }
    }
}

fn is_uniform(binding: &naga::Binding) -> bool {
    use BuiltIn::{NumSubgroups, NumWorkGroups, SubgroupSize, WorkGroupId, WorkGroupSize};
    matches!(
        binding,
        naga::Binding::BuiltIn(
            WorkGroupId | NumWorkGroups | WorkGroupSize | SubgroupSize | NumSubgroups
        )
    )
}
