//! The integer operations on i32 and u32, generated from one table: WGSL body, native twin and
//! reference.
//!
//! All wrap modulo 2³² and are total: a divisor of 0 gives 0, the minimum of i32 divided by −1 is
//! itself, a shift by 32 or more (or by a negative count) gives 0, or −1 for the arithmetic right
//! shift of a negative number.

use std::sync::{Arc, LazyLock};

use super::{Arity, Binary, OpKernel, Unary, binary, elementwise_body, unary};
use crate::dtype::{DType, Element};
use crate::kernel::arguments::{KernelArguments, Slices};
use crate::kernel::native::NativeCall;
use crate::kernel::{Kernel, KernelBuilder};
use crate::operation::built_in;

/// A row of the table of integer operations.
pub struct IntegerOp {
    /// The operation's name; its kernels are `{name}_i32` and `{name}_u32`.
    pub name: &'static str,
    /// Number of operands.
    pub arity: Arity,
    /// The WGSL expression of `a` (and `b`).
    pub wgsl: &'static str,
    /// The reference on the values as i64; the result is taken modulo 2³². Unary operations ignore
    /// `b`.
    pub reference: fn(a: i64, b: i64) -> i64,
    /// Its kernels on i32 and on u32.
    define: fn(&IntegerOp) -> [OpKernel; 2],
}

macro_rules! integer_table {
    ($($arity:ident $name:ident($a:ident $(, $b:ident)?) wgsl $wgsl:literal native $native:expr, reference $reference:expr;)*) => {
        /// The table of integer operations.
        pub static INTEGER_OPS: &[IntegerOp] = &[$({
            fn signed(call: &NativeCall<'_>, arguments: $arity<Slices<'_, i32>>) {
                integer_table!(@run $arity, call, arguments, #[inline(always)] |$a: i32 $(, $b: i32)?| -> i32 { $native });
            }
            fn unsigned(call: &NativeCall<'_>, arguments: $arity<Slices<'_, u32>>) {
                integer_table!(@run $arity, call, arguments, #[inline(always)] |$a: u32 $(, $b: u32)?| -> u32 { $native });
            }
            fn define(op: &IntegerOp) -> [OpKernel; 2] {
                let signed = built_in(with_body(op, $arity::define_on::<i32>(format!("{}_i32", op.name))), signed);
                let unsigned = built_in(with_body(op, $arity::define_on::<u32>(format!("{}_u32", op.name))), unsigned);
                [OpKernel::$arity(signed), OpKernel::$arity(unsigned)]
            }
            fn reference(first: i64, second: i64) -> i64 {
                let $a = first;
                $(let $b = second;)?
                let _ = second;
                $reference
            }
            IntegerOp { name: stringify!($name), arity: Arity::$arity, wgsl: $wgsl, reference, define }
        }),*];
    };
    (@run Unary, $call:ident, $arguments:ident, $f:expr) => { unary($call, $arguments, $f, |_, _| {}) };
    (@run Binary, $call:ident, $arguments:ident, $f:expr) => { binary($call, ($arguments.x0, $arguments.x1, $arguments.y), [$arguments.n, $arguments.period, $arguments.run], $f) };
}

integer_table! {
    Binary add(a, b) wgsl "a + b" native a.wrapping_add(b), reference a + b;
    Binary sub(a, b) wgsl "a - b" native a.wrapping_sub(b), reference a - b;
    Binary mul(a, b) wgsl "a * b" native a.wrapping_mul(b), reference a.wrapping_mul(b);
    Binary div(a, b) wgsl "quotient(a, b)" native Integer::quotient(a, b), reference if b == 0 { 0 } else { a / b };
    Binary rem(a, b) wgsl "remainder(a, b)" native Integer::remainder(a, b), reference if b == 0 { 0 } else { a % b };
    Binary mod(a, b) wgsl "modulo(a, b)" native Integer::modulo(a, b), reference if b == 0 { 0 } else { a - b * floored_quotient(a, b) };
    Binary min(a, b) wgsl "min(a, b)" native a.min(b), reference a.min(b);
    Binary max(a, b) wgsl "max(a, b)" native a.max(b), reference a.max(b);
    Binary and(a, b) wgsl "a & b" native a & b, reference a & b;
    Binary or(a, b) wgsl "a | b" native a | b, reference a | b;
    Binary xor(a, b) wgsl "a ^ b" native a ^ b, reference a ^ b;
    Binary shl(a, b) wgsl "shift_left(a, b)" native Integer::shift_left(a, b), reference if (0..32).contains(&b) { a << b } else { 0 };
    Binary shr(a, b) wgsl "shift_right(a, b)" native Integer::shift_right(a, b), reference if (0..32).contains(&b) { a >> b } else { a >> 63 };
    Binary pow(a, b) wgsl "power(a, b)" native Integer::power(a, b), reference power(a, b);
    Unary neg(a) wgsl "int(0) - a" native a.wrapping_neg(), reference -a;
    Unary abs(a) wgsl "absolute(a)" native Integer::absolute(a), reference a.abs();
    Unary not(a) wgsl "~a" native !a, reference !a;
    Unary sign(a) wgsl "sign_of(a)" native Integer::sign(a), reference a.signum();
}

fn floored_quotient(a: i64, b: i64) -> i64 {
    let quotient = a / b;
    if a % b != 0 && (a < 0) != (b < 0) {
        quotient - 1
    } else {
        quotient
    }
}

/// From the highest bit of the exponent down.
fn power(a: i64, b: i64) -> i64 {
    match (a, b) {
        (1, ..0) => 1,
        (-1, ..0) => 1 - 2 * (b & 1),
        (_, ..0) => 0,
        _ => (0..u32::BITS).rev().fold(1i64, |y, bit| {
            let square = y.wrapping_mul(y);
            if (b >> bit) & 1 == 1 {
                square.wrapping_mul(a)
            } else {
                square
            }
        }),
    }
}

/// What i32 and u32 do not have under one name.
trait Integer: Element {
    fn quotient(self, b: Self) -> Self;
    fn remainder(self, b: Self) -> Self;
    fn modulo(self, b: Self) -> Self;
    fn shift_left(self, b: Self) -> Self;
    fn shift_right(self, b: Self) -> Self;
    fn power(self, b: Self) -> Self;
    fn absolute(self) -> Self;
    fn sign(self) -> Self;
}

macro_rules! integer {
    ($int:ident, negative $a:ident: $negative:expr) => {
        impl Integer for $int {
            #[inline(always)]
            fn quotient(self, b: Self) -> Self {
                if b == 0 { 0 } else { self.wrapping_div(b) }
            }
            #[inline(always)]
            fn remainder(self, b: Self) -> Self {
                if b == 0 { 0 } else { self.wrapping_rem(b) }
            }
            #[inline(always)]
            fn modulo(self, b: Self) -> Self {
                let is_negative = |$a: Self| $negative;
                let rest = self.remainder(b);
                if rest != 0 && is_negative(rest) != is_negative(b) {
                    rest.wrapping_add(b)
                } else {
                    rest
                }
            }
            #[inline(always)]
            fn shift_left(self, b: Self) -> Self {
                self.checked_shl(b as u32).unwrap_or(0)
            }
            #[inline(always)]
            fn shift_right(self, b: Self) -> Self {
                let is_negative = |$a: Self| $negative;
                self.checked_shr(b as u32)
                    .unwrap_or(if is_negative(self) { !0 } else { 0 })
            }
            #[inline(always)]
            fn power(self, b: Self) -> Self {
                let is_negative = |$a: Self| $negative;
                match (is_negative(b), self) {
                    (false, _) => self.wrapping_pow(b as u32),
                    (true, 1) => 1,
                    (true, _) if self == !0 => {
                        if b & 1 == 0 {
                            1
                        } else {
                            self
                        }
                    }
                    (true, _) => 0,
                }
            }
            #[inline(always)]
            fn absolute(self) -> Self {
                let is_negative = |$a: Self| $negative;
                if is_negative(self) {
                    self.wrapping_neg()
                } else {
                    self
                }
            }
            #[inline(always)]
            fn sign(self) -> Self {
                let is_negative = |$a: Self| $negative;
                if is_negative(self) {
                    !0
                } else {
                    Self::from(self != 0)
                }
            }
        }
    };
}

integer!(i32, negative a: a < 0);
integer!(u32, negative _a: false);

fn with_body<A: KernelArguments, T: Element>(
    op: &IntegerOp,
    builder: KernelBuilder<A, T>,
) -> KernelBuilder<A, T> {
    let helpers = if op.wgsl.contains('(') {
        include_str!("integer.wgsl")
    } else {
        ""
    };
    builder.body(format!(
        "alias int = {};\n{helpers}{}",
        T::DTYPE.wgsl(),
        elementwise_body(op.arity, op.wgsl)
    ))
}

static KERNELS: LazyLock<Vec<[OpKernel; 2]>> =
    LazyLock::new(|| INTEGER_OPS.iter().map(|op| (op.define)(op)).collect());

/// The kernels of this file: those on i32, then on u32.
pub fn kernels() -> Vec<Arc<Kernel>> {
    [0, 1]
        .into_iter()
        .flat_map(|signedness| {
            KERNELS
                .iter()
                .map(move |kernels| kernels[signedness].kernel().clone())
        })
        .collect()
}

/// The kernel of an operation on i32 or u32.
pub(super) fn find(name: &str, dtype: DType) -> Option<&'static OpKernel> {
    let index = INTEGER_OPS.iter().position(|op| op.name == name)?;
    Some(&KERNELS[index][usize::from(dtype == DType::U32)])
}
