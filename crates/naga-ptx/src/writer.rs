//! The text of one entry point: registers, labels and instructions.

use std::fmt::{self, Write as _};

use crate::scalar::{Class, Scalar};

/// An operand of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operand {
    Register(Class, u32),
    /// A constant by its bits.
    Immediate(Scalar, u64),
    /// The address of a variable of the entry point.
    Symbol(&'static str),
}

impl Operand {
    pub fn u32(value: u32) -> Operand {
        Operand::Immediate(Scalar::U32, u64::from(value))
    }

    pub fn i32(value: i32) -> Operand {
        Operand::Immediate(Scalar::I32, u64::from(value.cast_unsigned()))
    }

    pub fn u64(value: u64) -> Operand {
        Operand::Immediate(Scalar::U64, value)
    }

    /// An integer constant of a type.
    pub fn integer(scalar: Scalar, value: i128) -> Operand {
        let bits = value as u64;
        let mask = match scalar.class() {
            Class::Half => 0xffff,
            Class::Word => 0xffff_ffff,
            _ => u64::MAX,
        };
        Operand::Immediate(scalar, bits & mask)
    }

    /// A constant of a float type, rounded to it.
    pub fn float(scalar: Scalar, value: f64) -> Operand {
        match scalar {
            Scalar::F64 => Operand::Immediate(scalar, value.to_bits()),
            _ => Operand::Immediate(Scalar::F32, u64::from((value as f32).to_bits())),
        }
    }

    /// The same bits as another type of the same size.
    pub fn bitcast(self, scalar: Scalar) -> Operand {
        match self {
            Operand::Immediate(_, bits) => Operand::Immediate(scalar, bits),
            other => other,
        }
    }

    /// The same bits as an unsigned integer, for instructions that only move bits.
    pub fn bits(self) -> Operand {
        match self {
            Operand::Immediate(Scalar::I16, bits) => Operand::Immediate(Scalar::U16, bits),
            Operand::Immediate(Scalar::F32 | Scalar::I32, bits) => {
                Operand::Immediate(Scalar::U32, bits)
            }
            Operand::Immediate(Scalar::F64 | Scalar::I64, bits) => {
                Operand::Immediate(Scalar::U64, bits)
            }
            other => other,
        }
    }
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Operand::Register(class, number) => write!(f, "{}{number}", class.prefix()),
            Operand::Symbol(name) => f.write_str(name),
            Operand::Immediate(scalar, bits) => match scalar {
                Scalar::F32 => write!(f, "0f{bits:08X}"),
                Scalar::F64 => write!(f, "0d{bits:016X}"),
                Scalar::I16 => write!(f, "{}", (bits as u16).cast_signed()),
                Scalar::I32 => write!(f, "{}", (bits as u32).cast_signed()),
                Scalar::I64 => write!(f, "{}", bits.cast_signed()),
                _ => write!(f, "{bits}"),
            },
        }
    }
}

/// A branch target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Label(u32);

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "$L{}", self.0)
    }
}

/// Collects the body of an entry point.
#[derive(Default)]
pub(crate) struct Writer {
    body: String,
    registers: [u32; 4],
    labels: u32,
}

impl Writer {
    /// A fresh register for a value of the type.
    pub fn register(&mut self, scalar: Scalar) -> Operand {
        let class = scalar.class();
        let count = &mut self.registers[class as usize];
        *count += 1;
        Operand::Register(class, *count - 1)
    }

    /// Writes one instruction as given.
    pub fn line(&mut self, text: fmt::Arguments<'_>) {
        self.body.push('\t');
        self.body
            .write_fmt(text)
            .expect("invariant: writing to a string succeeds");
        self.body.push_str(";\n");
    }

    /// `mnemonic result, operands…` with a fresh result.
    pub fn op(
        &mut self,
        mnemonic: impl fmt::Display,
        result: Scalar,
        operands: &[Operand],
    ) -> Operand {
        let to = self.register(result);
        self.op_to(mnemonic, to, operands);
        to
    }

    /// `mnemonic to, operands…`
    pub fn op_to(&mut self, mnemonic: impl fmt::Display, to: Operand, operands: &[Operand]) {
        let operands: Vec<Operand> = operands
            .iter()
            .map(|&operand| self.direct(operand))
            .collect();
        let mut text = format!("{mnemonic} {to}");
        for operand in operands {
            let _ = write!(text, ", {operand}");
        }
        self.line(format_args!("{text}"));
    }

    /// The operand in a form that instructions accept: PTX has no constants of type f16 or pred.
    pub fn direct(&mut self, operand: Operand) -> Operand {
        match operand {
            Operand::Immediate(Scalar::F16 | Scalar::Bool, _) => self.in_register(operand),
            other => other,
        }
    }

    /// The operand in a register.
    pub fn in_register(&mut self, operand: Operand) -> Operand {
        match operand {
            Operand::Register(..) => operand,
            Operand::Symbol(_) => {
                let to = self.register(Scalar::U64);
                self.line(format_args!("mov.u64 {to}, {operand}"));
                to
            }
            Operand::Immediate(Scalar::Bool, value) => {
                let to = self.register(Scalar::Bool);
                self.line(format_args!("setp.ne.u32 {to}, {value}, 0"));
                to
            }
            Operand::Immediate(scalar, _) => {
                let to = self.register(scalar);
                self.line(format_args!(
                    "mov.{} {to}, {}",
                    scalar.bits(),
                    operand.bits()
                ));
                to
            }
        }
    }

    /// Copies a value into an existing register.
    pub fn assign(&mut self, to: Operand, from: Operand) {
        if to == from {
            return;
        }
        if let (Operand::Register(Class::Predicate, _), Operand::Immediate(_, value)) = (to, from) {
            return self.line(format_args!("setp.ne.u32 {to}, {value}, 0"));
        }
        let Operand::Register(class, _) = to else {
            return;
        };
        let from = from.bits();
        self.line(format_args!("mov.{} {to}, {from}", class.bits()));
    }

    pub fn label(&mut self) -> Label {
        self.labels += 1;
        Label(self.labels - 1)
    }

    pub fn place(&mut self, label: Label) {
        let _ = writeln!(self.body, "{label}:");
    }

    pub fn branch(&mut self, to: Label) {
        self.line(format_args!("bra {to}"));
    }

    pub fn branch_if(&mut self, condition: Operand, to: Label) {
        let condition = self.direct(condition);
        self.line(format_args!("@{condition} bra {to}"));
    }

    pub fn branch_unless(&mut self, condition: Operand, to: Label) {
        let condition = self.direct(condition);
        self.line(format_args!("@!{condition} bra {to}"));
    }

    /// Register declarations, then the instructions.
    pub fn finish(self) -> (String, String) {
        let mut declarations = String::new();
        for class in Class::ALL {
            let count = self.registers[class as usize];
            if count > 0 {
                let _ = writeln!(
                    declarations,
                    "\t.reg .{} {}<{count}>;",
                    class.bits(),
                    class.prefix()
                );
            }
        }
        (declarations, self.body)
    }
}
