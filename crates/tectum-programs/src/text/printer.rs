//! The disassembler.

use std::fmt;

use super::immediate::{float_text, text_of};
use crate::{Address, BranchTarget, BufferIndex, Instruction, Program, SharedAddress, Span};

impl Program {
    /// The text and the position of each instruction in it.
    pub(crate) fn print(&self) -> (String, Vec<Span>) {
        let mut lines = self.head();
        let mut spans = Vec::with_capacity(self.instructions().len());
        let mut labels = self.labels().iter().peekable();
        for index in 0..=self.instructions().len() {
            while let Some(label) = labels.next_if(|label| label.target.index() == index) {
                lines.push(format!("@{}:", label.name));
            }
            if let Some(instruction) = self.instructions().get(index) {
                lines.push(format!("    {}", self.instruction_text(instruction)));
                spans.push(Span {
                    line: lines.len() as u32,
                    column: 5,
                });
            }
        }
        (
            lines
                .iter()
                .flat_map(|line| [line.as_str(), "\n"])
                .collect(),
            spans,
        )
    }

    fn head(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if !self.name().is_empty() {
            lines.push(format!("program {}", self.name()));
        }
        for buffer in self.buffers() {
            let boundary = if buffer.boundary { " boundary" } else { "" };
            lines.push(format!(
                "buffer {}: {} {}{boundary}",
                buffer.name,
                buffer.ty,
                buffer.access.name()
            ));
        }
        let sizes = [("shared", self.shared_bytes()), ("pool", self.pool_bytes())];
        lines.extend(
            sizes
                .into_iter()
                .filter(|(_, bytes)| *bytes != 0)
                .map(|(name, bytes)| format!("{name} {bytes}")),
        );
        lines
    }

    /// One instruction as text, with the names of this program's buffers and labels.
    pub fn instruction_text(&self, instruction: &Instruction) -> String {
        use Instruction as I;
        match *instruction {
            I::LoadGlobal { ty, dst, address } => {
                format!("ldg.{ty} {dst}, {}", self.address(address))
            }
            I::StoreGlobal { ty, src, address } => {
                format!("stg.{ty} {}, {src}", self.address(address))
            }
            I::LoadShared { ty, dst, address } => format!("lds.{ty} {dst}, {}", shared(address)),
            I::StoreShared { ty, src, address } => format!("sts.{ty} {}, {src}", shared(address)),
            I::Move { ty, dst, src } => format!("mov.{ty} {dst}, {src}"),
            I::MoveImmediate { ty, dst, bits } => {
                format!("mov_imm.{ty} {dst}, {}", text_of(ty, bits))
            }
            I::Convert { to, from, dst, src } => format!("cvt.{to}.{from} {dst}, {src}"),
            I::Unary { op, ty, dst, src } => format!("{op}.{ty} {dst}, {src}"),
            I::Binary { op, ty, dst, a, b } => format!("{op}.{ty} {dst}, {a}, {b}"),
            I::Ternary {
                op,
                ty,
                dst,
                a,
                b,
                c,
            } => format!("{op}.{ty} {dst}, {a}, {b}, {c}"),
            I::Compare {
                condition,
                ty,
                dst,
                a,
                b,
            } => format!("set.{condition}.{ty} {dst}, {a}, {b}"),
            I::Select {
                ty,
                dst,
                predicate,
                on_true,
                on_false,
            } => format!("sel.{ty} {dst}, {predicate}, {on_true}, {on_false}"),
            I::Branch {
                target,
                guard: None,
            } => format!("bra {}", self.label(target)),
            I::Branch {
                target,
                guard: Some(guard),
            } => {
                format!(
                    "bra {}, {}{}",
                    self.label(target),
                    if guard.when { "" } else { "!" },
                    guard.predicate
                )
            }
            I::Call { target } => format!("call {}", self.label(target)),
            I::Return => "ret".to_owned(),
            I::Loop { count, body } => format!("loop {count}, {}", self.label(body)),
            I::Exit => "exit".to_owned(),
            I::Barrier { id } => format!("bar.sync {id}"),
            I::Fence { scope } => format!("fence.{scope}"),
            I::ClassGet { dst } => format!("cls_get {dst}"),
            I::Mirror { dst, src } => format!("mirror {dst}, {src}"),
            I::UnityTest { dst, epsilon_bits } => {
                format!("unity_test {dst}, {}", float_text(epsilon_bits))
            }
            I::NeighborCount { dst, class } => format!("nbr_count {dst}, {class}"),
            I::NeighborGet { dst, class, index } => format!("nbr_get {dst}, {class}, {index}"),
            I::ResonanceAccumulate { class, value } => format!("res_accum {class}, {value}"),
            I::PhaseGet { dst } => format!("phase_get {dst}"),
            I::PhaseAdvance { delta } => format!("phase_adv {delta}"),
            I::BoundaryMap {
                dst,
                class,
                page,
                byte,
            } => format!("bound_map {dst}, {class}, {page}, {byte}"),
            I::Reduce {
                op,
                ty,
                dst,
                first,
                count,
            } => format!("{op}.{ty} {dst}, {first}, {count}"),
            I::PoolAllocate { dst, bytes } => format!("pool_alloc {dst}, {bytes}"),
            I::PoolFree { handle } => format!("pool_free {handle}"),
            I::PoolLoad {
                ty,
                dst,
                handle,
                offset,
            } => format!("pool_load.{ty} {dst}, [{handle} + {offset}]"),
            I::PoolStore {
                ty,
                src,
                handle,
                offset,
            } => format!("pool_store.{ty} [{handle} + {offset}], {src}"),
        }
    }

    fn label(&self, target: BranchTarget) -> String {
        format!(
            "@{}",
            self.label_of(target)
                .expect("invariant: a program's targets have labels")
        )
    }

    fn address(&self, address: Address) -> String {
        let name = |buffer: BufferIndex| &self.buffer(buffer).name;
        match address {
            Address::Own { buffer } => format!("[{}]", name(buffer)),
            Address::Constant { buffer, bytes } => format!("[{} + {bytes}]", name(buffer)),
            Address::Indexed { buffer, offset } => format!("[{} + {offset}]", name(buffer)),
            Address::Handle { handle, bytes } => format!("[{handle} + {bytes}]"),
            Address::Computed { handle, offset } => format!("[{handle} + {offset}]"),
            Address::Phi(phi) => format!("[Phi({},{},{})]", phi.class, phi.page, phi.byte),
        }
    }
}

impl fmt::Display for Program {
    /// The text form; [`Program::parse`] of it gives an equal program.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.print().0)
    }
}

fn shared(address: SharedAddress) -> String {
    match address {
        SharedAddress::Own => "[shared]".to_owned(),
        SharedAddress::Constant(bytes) => format!("[shared + {bytes}]"),
        SharedAddress::Indexed(offset) => format!("[shared + {offset}]"),
    }
}
