//! Reads a file's bytes with bounded memory and depth, whatever they are.

use rten_onnx::onnx::{ModelProto, TensorProto};
use rten_onnx::protobuf::{DecodeMessage, ErrorKind, FieldTypes, OwnedValues, ProtobufError, ReadValue};
use tectum::{Error, Result};

/// Graphs within attributes within graphs; each level is several calls deep.
const MAX_DEPTH: usize = 24;

type ReadResult<T> = std::result::Result<T, ProtobufError>;

/// Reads a model.
///
/// # Errors
/// `Data` for bytes that are no model.
pub(crate) fn model(bytes: &[u8]) -> Result<ModelProto> {
    check_depth(bytes)?;
    let model = ModelProto::decode(Slice::new(bytes)).map_err(|error| Error::data(format!("not an ONNX model: {error}")))?;
    if model.graph.is_some() { Ok(model) } else { Err(Error::data("not an ONNX model: it has no graph")) }
}

/// Reads a tensor on its own, as the test data of ONNX has them.
///
/// # Errors
/// `Data` for bytes that are no tensor.
pub(crate) fn tensor(bytes: &[u8]) -> Result<TensorProto> {
    TensorProto::decode(Slice::new(bytes)).map_err(|error| Error::data(format!("not an ONNX tensor: {error}")))
}

/// Reads values from bytes. A length beyond the end is an error before anything is allocated.
struct Slice<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> Slice<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0 }
    }

    fn take(&mut self, len: usize) -> ReadResult<&'a [u8]> {
        let part = self.bytes.get(self.position..).and_then(|rest| rest.get(..len));
        let part = part.ok_or_else(|| ProtobufError::new(ErrorKind::Eof))?;
        self.position += len;
        Ok(part)
    }

    fn array<const N: usize>(&mut self) -> ReadResult<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    /// The next field of a message: its number and, if it has a length, its bytes.
    fn field(&mut self) -> ReadResult<Option<(u64, &'a [u8])>> {
        while self.position < self.bytes.len() {
            let tag = self.read_varint()?;
            match tag & 7 {
                0 => drop(self.read_varint()?),
                1 => drop(self.take(8)?),
                5 => drop(self.take(4)?),
                2 => {
                    let len = usize::try_from(self.read_varint()?).unwrap_or(usize::MAX);
                    return Ok(Some((tag >> 3, self.take(len)?)));
                }
                _ => return Err(ProtobufError::new(ErrorKind::InvalidWireType)),
            }
        }
        Ok(None)
    }
}

impl ReadValue for Slice<'_> {
    type Types = OwnedValues;

    fn read_i32(&mut self) -> ReadResult<i32> {
        self.array().map(i32::from_le_bytes)
    }

    fn read_i64(&mut self) -> ReadResult<i64> {
        self.array().map(i64::from_le_bytes)
    }

    fn read_varint(&mut self) -> ReadResult<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(ProtobufError::new(ErrorKind::InvalidVarint))
    }

    fn read_bytes(&mut self, len: usize) -> ReadResult<<Self::Types as FieldTypes>::Bytes> {
        self.take(len).map(<[u8]>::to_vec)
    }

    fn read_string(&mut self, len: usize) -> ReadResult<<Self::Types as FieldTypes>::String> {
        String::from_utf8(self.read_bytes(len)?).map_err(|_| ProtobufError::new(ErrorKind::InvalidUtf8))
    }

    fn skip(&mut self, len: usize) -> ReadResult<()> {
        self.take(len).map(drop)
    }

    fn position(&self) -> u64 {
        self.position as u64
    }
}

/// Refuses graphs nested deeper than a reader's stack should go: the parser itself has no limit.
fn check_depth(bytes: &[u8]) -> Result<()> {
    // Fields by which messages contain messages that may contain them again.
    const MODEL_GRAPH: u64 = 7;
    const GRAPH: [u64; 4] = [1, 11, 12, 13];
    const NODE_ATTRIBUTE: u64 = 5;
    const ATTRIBUTE_GRAPH: u64 = 6;
    const VALUE_TYPE: u64 = 2;
    const TYPE_SEQUENCE: u64 = 4;
    #[derive(Clone, Copy)]
    enum Message {
        Model,
        Graph,
        Node,
        Attribute,
        Value,
        Type,
        Sequence,
    }
    let mut waiting = vec![(Message::Model, bytes, 0usize)];
    while let Some((message, bytes, depth)) = waiting.pop() {
        if depth > MAX_DEPTH {
            return Err(Error::data(format!("not an ONNX model: graphs or types are nested more than {MAX_DEPTH} deep")));
        }
        let mut fields = Slice::new(bytes);
        // What cannot be read here is refused by the parser, with its place.
        while let Ok(Some((number, bytes))) = fields.field() {
            let inner = match (message, number) {
                (Message::Model, MODEL_GRAPH) => (Message::Graph, depth),
                (Message::Graph, 1) => (Message::Node, depth),
                (Message::Graph, number) if GRAPH.contains(&number) => (Message::Value, depth),
                (Message::Node, NODE_ATTRIBUTE) => (Message::Attribute, depth),
                (Message::Attribute, ATTRIBUTE_GRAPH) => (Message::Graph, depth + 1),
                (Message::Value, VALUE_TYPE) => (Message::Type, depth),
                (Message::Type, TYPE_SEQUENCE) => (Message::Sequence, depth),
                (Message::Sequence, 1) => (Message::Type, depth + 1),
                _ => continue,
            };
            waiting.push((inner.0, bytes, inner.1));
        }
    }
    Ok(())
}
