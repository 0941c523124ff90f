//! Messages of ROS 2: definitions, their type hashes, and CDR, the form that their bytes have.
//!
//! A [`Definition`] is what a message type consists of. It is read from the text of `.msg` files,
//! which recordings contain (`ros2msg` of MCAP), or is one of [`INTERFACES`]. A [`Decoder`] or an
//! [`Encoder`] is compiled from a definition and **paths** of fields, once; messages are then read
//! and written without a tree of values.
//!
//! A path names a field: `position`, `header.stamp.sec`, `ranges[3]`,
//! `transforms[0].transform.rotation.w`. A path of an array without an index is the whole array.
//!
//! CDR is the plain form, version 1, little or big endian: `00 01 00 00` or `00 00 00 00`, then the
//! fields in order, each number aligned to its size, counted from the byte after these four. The
//! layout of `wstring` depends on the middleware, so that messages with such a field are refused.
//!
//! ```
//! use tectum_control::ros::{Decoder, Definition, Encoder, Number, Numbers, Value};
//! let definition = Definition::known("sensor_msgs/msg/JointState")?;
//! assert!(definition.type_hash().starts_with("RIHS01_a13ee3a3"));
//! let encoder = Encoder::new(&definition, &["header.stamp.sec", "name", "position"])?;
//! let mut bytes = Vec::new();
//! encoder.encode(
//!     &[
//!         Value::Number(Number::Signed(7)),
//!         Value::Texts(&["hip", "knee"]),
//!         Value::Numbers(Numbers::F32(&[0.5, -1.0])),
//!     ],
//!     &mut bytes,
//! )?;
//! let mut decoder = Decoder::new(&definition, &["position[1]", "name"])?;
//! let fields = decoder.decode(&bytes)?;
//! assert_eq!(fields.number(0), Some(Number::Float(-1.0)));
//! assert!(fields.texts(1).eq(["hip", "knee"]));
//! # Ok::<(), tectum::Error>(())
//! ```
//!
//! # Source
//! OMG, "Common Object Request Broker Architecture", CDR transfer syntax; OMG, "DDS Interoperability
//! Wire Protocol" 2.2, section 10; REP-2011 and REP-2016 for type hashes.

mod decoder;
mod definition;
mod encoder;
mod interfaces;
mod joints;
mod parser;
mod selection;
mod type_hash;

pub use decoder::{Decoder, Fields};
pub use definition::{
    Constant, Definition, Element, Extent, Field, FieldType, Literal, Primitive, StructType,
};
pub use encoder::{Encoder, Numbers, Value};
pub use interfaces::INTERFACES;
pub use joints::STAMP;
pub(crate) use joints::{NAMES, name_paths};

/// A number of a message. Every number of ROS is exactly one of these.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// Of `float32` and `float64`.
    Float(f64),
    /// Of signed integers.
    Signed(i64),
    /// Of unsigned integers, `byte`, `char`, and of `bool`: 0 or 1.
    Unsigned(u64),
}

impl Number {
    /// The nearest number of 64-bit floating point: integers above 2^53 are rounded.
    pub fn to_f64(self) -> f64 {
        match self {
            Self::Float(number) => number,
            Self::Signed(number) => number as f64,
            Self::Unsigned(number) => number as f64,
        }
    }
}
