//! The attributes of a node, and which of them an operator has read.

use std::cell::RefCell;
use std::collections::BTreeSet;

use rten_onnx::onnx::{AttributeProto, AttributeType, GraphProto, NodeProto, TensorProto};
use tectum::{Error, Result};

/// The attributes of a node.
pub(crate) struct Attributes<'a> {
    all: &'a [AttributeProto],
    read: RefCell<BTreeSet<&'static str>>,
}

impl<'a> Attributes<'a> {
    pub fn of(node: &'a NodeProto) -> Self {
        Self {
            all: &node.attribute,
            read: RefCell::default(),
        }
    }

    fn find(&self, name: &'static str, kind: AttributeType) -> Result<Option<&'a AttributeProto>> {
        self.read.borrow_mut().insert(name);
        let found = self
            .all
            .iter()
            .find(|attribute| attribute.name.as_deref() == Some(name));
        match found {
            Some(attribute)
                if attribute.r#type.is_some_and(|stated| {
                    stated.0 != kind.0 && stated.0 != AttributeType::UNDEFINED.0
                }) =>
            {
                Err(Error::data(format!(
                    "attribute {name} has another type than the operator defines"
                )))
            }
            found => Ok(found),
        }
    }

    pub fn int(&self, name: &'static str) -> Result<Option<i64>> {
        Ok(self
            .find(name, AttributeType::INT)?
            .map(|attribute| attribute.i.unwrap_or(0)))
    }

    pub fn int_or(&self, name: &'static str, default: i64) -> Result<i64> {
        Ok(self.int(name)?.unwrap_or(default))
    }

    pub fn flag(&self, name: &'static str, default: bool) -> Result<bool> {
        Ok(self.int_or(name, default.into())? != 0)
    }

    pub fn float(&self, name: &'static str) -> Result<Option<f32>> {
        Ok(self
            .find(name, AttributeType::FLOAT)?
            .map(|attribute| attribute.f.unwrap_or(0.0)))
    }

    pub fn float_or(&self, name: &'static str, default: f32) -> Result<f32> {
        Ok(self.float(name)?.unwrap_or(default))
    }

    pub fn ints(&self, name: &'static str) -> Result<Option<Vec<i64>>> {
        Ok(self
            .find(name, AttributeType::INTS)?
            .map(|attribute| attribute.ints.clone()))
    }

    pub fn floats(&self, name: &'static str) -> Result<Option<Vec<f32>>> {
        Ok(self
            .find(name, AttributeType::FLOATS)?
            .map(|attribute| attribute.floats.clone()))
    }

    pub fn string(&self, name: &'static str) -> Result<Option<&'a str>> {
        Ok(self
            .find(name, AttributeType::STRING)?
            .map(|attribute| attribute.s.as_deref().unwrap_or_default()))
    }

    pub fn string_or(&self, name: &'static str, default: &'a str) -> Result<&'a str> {
        Ok(self.string(name)?.unwrap_or(default))
    }

    pub fn strings(&self, name: &'static str) -> Result<Option<&'a [String]>> {
        Ok(self
            .find(name, AttributeType::STRINGS)?
            .map(|attribute| attribute.strings.as_slice()))
    }

    pub fn tensor(&self, name: &'static str) -> Result<Option<&'a TensorProto>> {
        Ok(self
            .find(name, AttributeType::TENSOR)?
            .and_then(|attribute| attribute.t.as_ref()))
    }

    pub fn graph(&self, name: &'static str) -> Result<&'a GraphProto> {
        let found = self
            .find(name, AttributeType::GRAPH)?
            .and_then(|attribute| attribute.g.as_ref());
        found.ok_or_else(|| Error::data(format!("attribute {name} is missing")))
    }

    /// Attributes that the operator did not ask for: it would ignore them.
    pub fn unread(&self) -> Vec<&'a str> {
        let read = self.read.borrow();
        self.all
            .iter()
            .filter_map(|attribute| attribute.name.as_deref())
            .filter(|name| !read.contains(name))
            .collect()
    }
}
