//! Statements: control flow, calls, stores, barriers.

use std::collections::HashMap;

use naga::{
    Barrier, Block, Expression, Function, Handle, Span, Statement, SwitchCase, SwitchValue,
};

use crate::arithmetic::Comparison;
use crate::error::{Error, Result};
use crate::scalar::Scalar;
use crate::shape;
use crate::translator::{Entry, Frame, LoopLabels, Translator};
use crate::writer::Operand;

impl<'a> Translator<'a> {
    pub fn block(&mut self, block: &'a Block) -> Result<()> {
        for (statement, &span) in block.span_iter() {
            self.statement(statement, span)
                .map_err(|error| error.at(span))?;
        }
        Ok(())
    }

    fn statement(&mut self, statement: &'a Statement, span: Span) -> Result<()> {
        match statement {
            Statement::Emit(range) => {
                for handle in range.clone() {
                    let place = self.frame.function.expressions.get_span(handle);
                    let entry = self.evaluate(handle).map_err(|error| error.at(place))?;
                    self.frame.entries.insert(handle, entry);
                }
                Ok(())
            }
            Statement::Block(inner) => self.block(inner),
            Statement::If {
                condition,
                accept,
                reject,
            } => self.if_else(*condition, accept, reject),
            Statement::Switch { selector, cases } => self.switch(*selector, cases),
            Statement::Loop {
                body,
                continuing,
                break_if,
            } => self.repeat(body, continuing, *break_if),
            Statement::Break => {
                let exit = self.innermost("break", |exits| Some(exits.exit))?;
                self.writer.branch(exit);
                Ok(())
            }
            Statement::Continue => {
                let next = self.innermost("continue", |exits| exits.next)?;
                self.writer.branch(next);
                Ok(())
            }
            Statement::Return { value } => self.return_statement(*value),
            Statement::ControlBarrier(barrier) => self.control_barrier(*barrier, span),
            Statement::MemoryBarrier(barrier) => self.memory_barrier(*barrier, span),
            Statement::Store { pointer, value } => self.store_statement(*pointer, *value),
            Statement::Atomic {
                pointer,
                fun,
                value,
                result,
            } => self.atomic(*pointer, *fun, *value, *result),
            Statement::WorkGroupUniformLoad { pointer, result } => {
                self.writer.line(format_args!("bar.sync 0"));
                let place = self.pointer(*pointer)?;
                let inner = self.pointee(*pointer)?;
                let values = self.load(&place, &inner)?;
                self.writer.line(format_args!("bar.sync 0"));
                self.frame.entries.insert(*result, Entry::Value(values));
                Ok(())
            }
            Statement::Call {
                function,
                arguments,
                result,
            } => self.call(*function, arguments, *result),
            Statement::SubgroupBallot { result, predicate } => {
                self.require_full_warps(span)?;
                self.ballot(*result, *predicate)
            }
            Statement::SubgroupGather {
                mode,
                argument,
                result,
            } => {
                self.require_full_warps(span)?;
                self.gather(*mode, *argument, *result)
            }
            Statement::SubgroupCollectiveOperation {
                op,
                collective_op,
                argument,
                result,
            } => {
                self.require_full_warps(span)?;
                self.collective(*op, *collective_op, *argument, *result)
            }
            Statement::Kill => Err(Error::unsupported("discard", span)),
            Statement::ImageStore { .. } => Err(Error::unsupported("textureStore", span)),
            Statement::ImageAtomic { .. } => Err(Error::unsupported("texture atomic", span)),
            Statement::RayQuery { .. } => Err(Error::unsupported("ray query", span)),
            Statement::RayPipelineFunction(_) => {
                Err(Error::unsupported("ray pipeline function", span))
            }
            Statement::CooperativeStore { .. } => {
                Err(Error::unsupported("cooperative matrix", span))
            }
        }
    }

    fn innermost<T>(&self, what: &str, choose: impl Fn(&LoopLabels) -> Option<T>) -> Result<T> {
        let found = self.frame.exits.iter().rev().find_map(choose);
        found.ok_or_else(|| Error::unsupported(format!("{what} outside a loop"), Span::UNDEFINED))
    }

    fn if_else(
        &mut self,
        condition: Handle<Expression>,
        accept: &'a Block,
        reject: &'a Block,
    ) -> Result<()> {
        let condition = self.scalar_value(condition)?;
        let (otherwise, end) = (self.writer.label(), self.writer.label());
        self.writer.branch_unless(condition, otherwise);
        self.block(accept)?;
        if !reject.is_empty() {
            self.writer.branch(end);
        }
        self.writer.place(otherwise);
        self.block(reject)?;
        self.writer.place(end);
        Ok(())
    }

    fn switch(&mut self, selector: Handle<Expression>, cases: &'a [SwitchCase]) -> Result<()> {
        let selector = self.scalar_value(selector)?;
        let end = self.writer.label();
        let labels: Vec<_> = cases.iter().map(|_| self.writer.label()).collect();
        let mut default = end;
        for (case, &label) in cases.iter().zip(&labels) {
            let value = match case.value {
                SwitchValue::I32(value) => Operand::i32(value),
                SwitchValue::U32(value) => Operand::u32(value),
                SwitchValue::Default => {
                    default = label;
                    continue;
                }
            };
            let here = self
                .writer
                .compare(Comparison::Eq, Scalar::U32, selector, value.bits());
            self.writer.branch_if(here, label);
        }
        self.writer.branch(default);
        self.frame.exits.push(LoopLabels {
            exit: end,
            next: None,
        });
        for (case, &label) in cases.iter().zip(&labels) {
            self.writer.place(label);
            self.block(&case.body)?;
            if !case.fall_through {
                self.writer.branch(end);
            }
        }
        self.frame.exits.pop();
        self.writer.place(end);
        Ok(())
    }

    fn repeat(
        &mut self,
        body: &'a Block,
        continuing: &'a Block,
        break_if: Option<Handle<Expression>>,
    ) -> Result<()> {
        let (head, next, exit) = (
            self.writer.label(),
            self.writer.label(),
            self.writer.label(),
        );
        self.writer.place(head);
        self.frame.exits.push(LoopLabels {
            exit,
            next: Some(next),
        });
        self.block(body)?;
        self.writer.place(next);
        self.block(continuing)?;
        self.frame.exits.pop();
        if let Some(condition) = break_if {
            let condition = self.scalar_value(condition)?;
            self.writer.branch_if(condition, exit);
        }
        self.writer.branch(head);
        self.writer.place(exit);
        Ok(())
    }

    fn return_statement(&mut self, value: Option<Handle<Expression>>) -> Result<()> {
        let values = value.map(|value| self.value(value)).transpose()?;
        let Some((label, registers)) = self.frame.outcome.clone() else {
            self.writer.line(format_args!("ret"));
            return Ok(());
        };
        for (to, from) in registers.into_iter().zip(values.unwrap_or_default()) {
            self.writer.assign(to, from);
        }
        self.writer.branch(label);
        Ok(())
    }

    /// Inlines a callee.
    fn call(
        &mut self,
        handle: Handle<Function>,
        arguments: &[Handle<Expression>],
        result: Option<Handle<Expression>>,
    ) -> Result<()> {
        let function = &self.module.functions[handle];
        let arguments = arguments
            .iter()
            .map(|&argument| self.entry_of(argument))
            .collect::<Result<Vec<_>>>()?;
        let registers = match &function.result {
            Some(result) => {
                let scalars = shape::scalars(self.module, &self.module.types[result.ty].inner)?;
                scalars
                    .into_iter()
                    .map(|scalar| self.writer.register(scalar))
                    .collect()
            }
            None => Vec::new(),
        };
        let end = self.writer.label();
        let callee = Frame {
            function,
            info: &self.info[handle],
            arguments,
            locals: HashMap::new(),
            entries: HashMap::new(),
            exits: Vec::new(),
            outcome: Some((end, registers.clone())),
        };
        let caller = std::mem::replace(&mut self.frame, callee);
        self.place_locals(Some(handle))?;
        self.block(&function.body)?;
        self.frame = caller;
        self.writer.place(end);
        if let Some(result) = result {
            self.frame.entries.insert(result, Entry::Value(registers));
        }
        Ok(())
    }

    /// `bar.sync` also orders the workgroup's earlier accesses to shared and global memory.
    fn control_barrier(&mut self, barrier: Barrier, span: Span) -> Result<()> {
        if barrier.contains(Barrier::TEXTURE) {
            return Err(Error::unsupported("textureBarrier", span));
        }
        if barrier.intersects(Barrier::WORK_GROUP | Barrier::STORAGE) {
            self.writer.line(format_args!("bar.sync 0"));
        } else {
            self.require_full_warps(span)?;
            self.writer.line(format_args!("bar.warp.sync 0xffffffff"));
        }
        Ok(())
    }

    fn memory_barrier(&mut self, barrier: Barrier, span: Span) -> Result<()> {
        if barrier.contains(Barrier::TEXTURE) {
            return Err(Error::unsupported("texture memory barrier", span));
        }
        self.writer.line(format_args!("fence.acq_rel.cta"));
        Ok(())
    }

    fn store_statement(
        &mut self,
        pointer: Handle<Expression>,
        value: Handle<Expression>,
    ) -> Result<()> {
        let place = self.pointer(pointer)?;
        let inner = self.pointee(pointer)?;
        let values = self.value(value)?;
        if matches!(inner, naga::TypeInner::Atomic(_)) {
            return self.atomic_store(&place, &inner, values[0]);
        }
        self.store(&place, &inner, &values)
    }
}
