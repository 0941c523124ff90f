//! The exponentials of four arguments side by side: in a loop over four streams each step is done
//! for all four before the next, so four chains of dependent steps are in flight where one would
//! stall the processor. The bits are those of the functions of one argument.

use std::ops::{Add, Div, Mul, Neg, Sub};

/// Four numbers.
#[derive(Clone, Copy, Debug)]
pub struct Four(pub [f32; 4]);

type Real = Four;

const LOG2_E: Real = Four([super::LOG2_E; 4]);
const LN2_HI: Real = Four([super::LN2_HI; 4]);
const LN2_LO: Real = Four([super::LN2_LO; 4]);
const LN2: Real = Four([super::LN2; 4]);
const ROUND: Real = Four([super::ROUND; 4]);
const ONE: Real = Four([super::ONE; 4]);
const EXP_END: Real = Four([super::EXP_END; 4]);
const EXP_TOP: Real = Four([super::EXP_TOP; 4]);
const EXP2_END: Real = Four([super::EXP2_END; 4]);
const EXP2_TOP: Real = Four([super::EXP2_TOP; 4]);
const TANH_ONE: Real = Four([super::TANH_ONE; 4]);
const HALF: Real = Four([super::HALF; 4]);
const TWICE_LOG2_E: Real = Four([super::TWICE_LOG2_E; 4]);
const EXP_COEFFICIENTS: [Real; super::EXP_COEFFICIENTS.len()] = fours(super::EXP_COEFFICIENTS);
const TWICE_EXP_COEFFICIENTS: [Real; super::EXP_COEFFICIENTS.len()] =
    fours(super::TWICE_EXP_COEFFICIENTS);

const fn fours<const N: usize>(numbers: [f32; N]) -> [Four; N] {
    let mut all = [Four([0.0; 4]); N];
    let mut i = 0;
    while i < N {
        all[i] = Four([numbers[i]; 4]);
        i += 1;
    }
    all
}

/// A step of one argument, done for each of the four.
macro_rules! steps {
    ($($(#[$doc:meta])* $step:ident($($x:ident),+);)*) => {
        $(
            $(#[$doc])*
            #[inline(always)]
            fn $step($($x: Real),+) -> Real {
                Four([super::$step($($x.0[0]),+), super::$step($($x.0[1]),+), super::$step($($x.0[2]),+), super::$step($($x.0[3]),+)])
            }
        )*
    };
}

steps! {
    fused(a, b, c);
    at_least(x, least);
    at_most(x, most);
    absolute(x);
    negative(x);
    with_sign(y, x);
    if_negative(x, yes, no);
    power_of(shifted);
    about_reciprocal(x);
    less_half_ln2(x, n);
    scaled(y, shifted);
}

macro_rules! operators {
    ($($operator:ident $function:ident $sign:tt;)*) => {
        $(impl $operator for Four {
            type Output = Self;
            #[inline(always)]
            fn $function(self, b: Self) -> Self {
                Self([self.0[0] $sign b.0[0], self.0[1] $sign b.0[1], self.0[2] $sign b.0[2], self.0[3] $sign b.0[3]])
            }
        })*
    };
}

operators! {
    Add add +;
    Sub sub -;
    Mul mul *;
    Div div /;
}

impl Neg for Four {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        Self([-self.0[0], -self.0[1], -self.0[2], -self.0[3]])
    }
}

include!("../exponentials.rs");
