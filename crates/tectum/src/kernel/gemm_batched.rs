//! Products of many matrices in one launch, over f32 or over f16 and bf16 packed two in a word, f32 accumulation.

use std::cell::RefCell;
use std::sync::{Arc, LazyLock};

use super::gemm::product;
use super::native::{NativeCall, for_each_chunk};
use super::pack::{Half, unpack};
use super::{Kernel, Prelude, built_in};
use crate::dtype::DType;

/// The layout of an operand's elements in its view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// One f32 in each word.
    F32,
    /// Two half-width floats in each word, the first in the low half.
    Half(Half),
}

impl Packing {
    /// All of them.
    pub const ALL: [Packing; 3] = [Packing::F32, Packing::Half(Half::F16), Packing::Half(Half::Bf16)];

    /// The element type of the view.
    pub fn dtype(self) -> DType {
        if self == Packing::F32 { DType::F32 } else { DType::U32 }
    }

    /// Words that hold `n` elements.
    pub fn words(self, n: usize) -> usize {
        match self {
            Packing::F32 => n,
            Packing::Half(half) => half.words(n),
        }
    }
}

static KERNELS: LazyLock<[Arc<Kernel>; 3]> = LazyLock::new(|| Packing::ALL.map(define));

/// `y[matrix, m, n] = Σ_k a[matrix, m, k]·b[matrix, k, n]` over operands of a packing.
pub fn kernel(packing: Packing) -> &'static Arc<Kernel> {
    match packing {
        Packing::F32 => &KERNELS[0],
        Packing::Half(Half::F16) => &KERNELS[1],
        Packing::Half(Half::Bf16) => &KERNELS[2],
    }
}

/// The kernels of this file.
pub fn kernels() -> Vec<Arc<Kernel>> {
    KERNELS.to_vec()
}

fn define(packing: Packing) -> Arc<Kernel> {
    let name = match packing {
        Packing::F32 => "f32",
        Packing::Half(half) => half.name(),
    };
    let reader = |operand: &str| match packing {
        Packing::F32 => format!("fn {operand}_at(i: u32) -> f32 {{\n    return {operand}[i];\n}}\n"),
        Packing::Half(_) => format!(
            "fn {operand}_at(i: u32) -> f32 {{\n    let word = {operand}[i / 2u];\n    return bitcast<f32>(tectum_{name}_bits(select(word & 0xffffu, word >> 16u, (i & 1u) == 1u)));\n}}\n"
        ),
    };
    let mut builder = Kernel::define(format!("gemm_batched_{name}"));
    if packing != Packing::F32 {
        builder = builder.prelude(Prelude::Pack);
    }
    let builder = builder.read("a", packing.dtype()).read("b", packing.dtype()).write("y", DType::F32);
    let builder = ["batch", "m", "n", "k", "a_matrix", "a_row", "a_col", "b_matrix", "b_row", "b_col"]
        .into_iter()
        .fold(builder, |builder, name| builder.param(name, DType::U32));
    let body = format!("{}{}{}", reader("a"), reader("b"), include_str!("../../kernels/gemm_batched.wgsl"));
    let native: super::NativeFn = match packing {
        Packing::F32 => |call| products(call, call.read::<f32>(0), call.read::<f32>(1)),
        Packing::Half(Half::F16) => |call| unpacked(call, Half::F16),
        Packing::Half(Half::Bf16) => |call| unpacked(call, Half::Bf16),
    };
    let loops = |params: &[u32], groups: u32| super::loops_of_product([params[0], params[1], params[2]], groups, params[3]);
    built_in(builder.body(body).loops(loops), native)
}

fn products(call: &NativeCall<'_>, a: &[f32], b: &[f32]) {
    let y = call.write::<f32>(2);
    let [batch, m, n, k] = [0, 1, 2, 3].map(|index| call.size(index));
    let [a_matrix, b_matrix] = [4, 7].map(|index| call.size(index));
    let (a_strides, b_strides) = ([call.size(5), call.size(6)], [call.size(8), call.size(9)]);
    let one = m * n * k / 16;
    let threads = call.threads_for(batch * one);
    let y = &mut y[..batch * m * n];
    // Small products one on each thread; large ones one after another, each on all threads.
    let within = if batch >= 2 * threads { 1 } else { call.threads_for(one) };
    for_each_chunk(y, m * n, if within > 1 { 1 } else { threads }, |matrix, y| {
        product([m, n, k], &a[matrix * a_matrix..], a_strides, &b[matrix * b_matrix..], b_strides, y, within);
    });
}

thread_local! {
    /// The operands of a product as f32, kept from launch to launch.
    static UNPACKED: RefCell<[Vec<f32>; 2]> = const { RefCell::new([Vec::new(), Vec::new()]) };
}

/// Unpacks both operands, which costs m·k + n·k of m·n·k, and multiplies as f32.
fn unpacked(call: &NativeCall<'_>, half: Half) {
    let operands = [call.read::<u32>(0), call.read::<u32>(1)];
    let [batch, m, n, k] = [0, 1, 2, 3].map(|index| call.size(index));
    let matrices = |index: usize| if call.size(index) == 0 { 1 } else { batch };
    let lengths = [matrices(4) * m * k, matrices(7) * k * n];
    // Moved out, not borrowed: while this thread waits for others it may run another product.
    let mut buffers = UNPACKED.take();
    for ((buffer, words), length) in buffers.iter_mut().zip(operands).zip(lengths) {
        if buffer.len() < length {
            buffer.resize(length, 0.0);
        }
        const CHUNK: usize = 1 << 15;
        for_each_chunk(&mut buffer[..length], CHUNK, call.threads_for(length), |index, part| {
            unpack(half, words, index * CHUNK, part);
        });
    }
    products(call, &buffers[0], &buffers[1]);
    UNPACKED.set(buffers);
}
