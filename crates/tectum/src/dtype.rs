//! Element types that device code and buffers share.

use bytemuck::Pod;
use serde::Serialize;

/// The type of one element in a buffer. All except [`DType::F64`] belong to the portable profile of
/// device code and are 32 bits wide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DType {
    /// IEEE 754 binary32.
    F32,
    /// Unsigned 32-bit integer.
    U32,
    /// Signed 32-bit integer, two's complement.
    I32,
    /// IEEE 754 binary64: on the CPU, CUDA and some Vulkan devices, never on Metal or DX12.
    F64,
}

impl DType {
    /// Bytes of one element.
    pub const fn bytes(self) -> usize {
        match self {
            DType::F32 | DType::U32 | DType::I32 => 4,
            DType::F64 => 8,
        }
    }

    /// The WGSL name.
    pub const fn wgsl(self) -> &'static str {
        match self {
            DType::F32 => "f32",
            DType::U32 => "u32",
            DType::I32 => "i32",
            DType::F64 => "f64",
        }
    }
}

/// A Rust type that a buffer may hold.
pub trait Element: Pod + PartialEq + Send + Sync + std::fmt::Debug {
    /// The matching element type.
    const DTYPE: DType;
}

impl Element for f32 {
    const DTYPE: DType = DType::F32;
}
impl Element for u32 {
    const DTYPE: DType = DType::U32;
}
impl Element for i32 {
    const DTYPE: DType = DType::I32;
}
impl Element for f64 {
    const DTYPE: DType = DType::F64;
}
