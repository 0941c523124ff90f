//! One entry point's translation: its parameters, variables and frame, and the assembled text.

use std::collections::HashMap;
use std::fmt::Write as _;

use naga::valid::{FunctionInfo, ModuleInfo};
use naga::{
    AddressSpace, EntryPoint, Expression, Function, GlobalVariable, Handle, LocalVariable, Module,
    Span, StorageAccess, TypeInner,
};

use crate::error::{Error, Result};
use crate::placement::Placement;
use crate::pointer_target::{PointerTarget, Space};
use crate::scalar::Scalar;
use crate::shape;
use crate::writer::{Label, Operand, Writer};
use crate::{Binding, BindingKind, Kernel, Options};

/// Maximum shared memory that a module may declare itself.
const STATIC_SHARED_BYTES: u32 = 48 << 10;
/// Variables with more scalars than this are in local memory.
const REGISTER_SCALARS: usize = 64;
/// Local and shared variables begin at multiples of this.
const VARIABLE_ALIGNMENT: u32 = 16;

/// The value of an expression.
#[derive(Debug, Clone)]
pub(crate) enum Entry {
    Value(Vec<Operand>),
    Pointer(PointerTarget),
}

/// Targets of `break` and `continue`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LoopLabels {
    pub exit: Label,
    pub next: Option<Label>,
}

/// The function whose body is being translated: callees are inlined, each with its own frame.
pub(crate) struct Frame<'a> {
    pub function: &'a Function,
    pub info: &'a FunctionInfo,
    pub arguments: Vec<Entry>,
    pub locals: HashMap<Handle<LocalVariable>, PointerTarget>,
    pub entries: HashMap<Handle<Expression>, Entry>,
    pub exits: Vec<LoopLabels>,
    /// Target of `return` and storage of its value; none in the entry point.
    pub outcome: Option<(Label, Vec<Operand>)>,
}

/// Translates one entry point.
pub(crate) struct Translator<'a> {
    pub module: &'a Module,
    pub info: &'a ModuleInfo,
    pub options: &'a Options,
    pub entry: &'a EntryPoint,
    pub writer: Writer,
    pub frame: Frame<'a>,
    pub globals: HashMap<Handle<GlobalVariable>, PointerTarget>,
    /// The scalars of each variable in registers.
    pub variables: Vec<Vec<Operand>>,
    placement: Placement,
    parameters: Vec<Binding>,
    shared_bytes: u32,
    local_bytes: u32,
}

impl<'a> Translator<'a> {
    pub fn new(
        module: &'a Module,
        info: &'a ModuleInfo,
        index: usize,
        options: &'a Options,
    ) -> Translator<'a> {
        let entry = &module.entry_points[index];
        let frame = Frame {
            function: &entry.function,
            info: info.get_entry_point(index),
            arguments: Vec::new(),
            locals: HashMap::new(),
            entries: HashMap::new(),
            exits: Vec::new(),
            outcome: None,
        };
        Translator {
            module,
            info,
            options,
            entry,
            writer: Writer::default(),
            frame,
            globals: HashMap::new(),
            variables: Vec::new(),
            placement: Placement::of(module, entry),
            parameters: Vec::new(),
            shared_bytes: 0,
            local_bytes: 0,
        }
    }

    pub fn translate(mut self) -> Result<Kernel> {
        let info = self.frame.info;
        self.bind_buffers(info)?;
        self.place_workgroup_variables(info)?;
        self.place_private_variables(info)?;
        self.frame.arguments = self.entry_arguments()?;
        self.place_locals(None)?;
        let body = &self.frame.function.body;
        self.block(body)?;
        Ok(self.assemble())
    }

    /// Adds the two parameters of every used buffer.
    fn bind_buffers(&mut self, info: &FunctionInfo) -> Result<()> {
        let mut used: Vec<_> = self
            .module
            .global_variables
            .iter()
            .filter(|(handle, _)| !info[*handle].is_empty())
            .collect();
        used.sort_by_key(|(_, variable)| {
            variable
                .binding
                .as_ref()
                .map(|binding| (binding.group, binding.binding))
        });
        for (handle, variable) in used {
            let span = self.module.global_variables.get_span(handle);
            let kind = match variable.space {
                AddressSpace::Uniform => BindingKind::Uniform,
                AddressSpace::Storage { access } if access.contains(StorageAccess::STORE) => {
                    BindingKind::StorageReadWrite
                }
                AddressSpace::Storage { .. } => BindingKind::StorageRead,
                AddressSpace::Private | AddressSpace::WorkGroup | AddressSpace::Function => {
                    continue;
                }
                AddressSpace::Handle => return Err(self.unsupported_global(variable, span)),
                other => {
                    return Err(Error::unsupported(
                        format!("variable in address space {other:?}"),
                        span,
                    ));
                }
            };
            let Some(resource) = variable.binding else {
                return Err(Error::unsupported(
                    "buffer without @group and @binding",
                    span,
                ));
            };
            if matches!(
                self.module.types[variable.ty].inner,
                TypeInner::BindingArray { .. }
            ) {
                return Err(self.unsupported_global(variable, span));
            }
            self.bind_buffer(handle, variable, kind, (resource.group, resource.binding));
        }
        Ok(())
    }

    fn unsupported_global(&self, variable: &GlobalVariable, span: Span) -> Error {
        let name = variable.name.as_deref().unwrap_or("unnamed");
        let what = match self.module.types[variable.ty].inner {
            TypeInner::Image { .. } => "texture",
            TypeInner::Sampler { .. } => "sampler",
            TypeInner::BindingArray { .. } => "binding array",
            TypeInner::AccelerationStructure { .. } => "acceleration structure",
            _ => "resource",
        };
        Error::unsupported(format!("{what} {name}"), span)
    }

    fn bind_buffer(
        &mut self,
        handle: Handle<GlobalVariable>,
        variable: &GlobalVariable,
        kind: BindingKind,
        (group, binding): (u32, u32),
    ) {
        let number = self.parameters.len();
        let address = self.writer.register(Scalar::U64);
        self.writer
            .line(format_args!("ld.param.u64 {address}, [p{number}_address]"));
        let length = shape::runtime_array(self.module, variable.ty)
            .map(|(offset, stride)| self.runtime_length(number, offset, stride));
        let constant = kind != BindingKind::StorageReadWrite && self.options.read_only_cache;
        let place = PointerTarget::Memory {
            space: Space::Global { constant },
            address,
            offset: 0,
            length,
        };
        self.globals.insert(handle, place);
        let min_bytes = self.module.types[variable.ty]
            .inner
            .size(self.module.to_ctx());
        self.parameters.push(Binding {
            group,
            binding,
            name: variable.name.clone(),
            kind,
            min_bytes,
        });
    }

    /// The number of elements of the run-time array at `offset`.
    fn runtime_length(&mut self, number: usize, offset: u32, stride: u32) -> Operand {
        let w = &mut self.writer;
        let bytes = w.register(Scalar::U64);
        w.line(format_args!("ld.param.u64 {bytes}, [p{number}_bytes]"));
        let bytes = w.sub(Scalar::U64, bytes, Operand::u64(u64::from(offset)));
        let elements = w.op(
            "div.u64",
            Scalar::U64,
            &[bytes, Operand::u64(u64::from(stride))],
        );
        w.convert(Scalar::U64, Scalar::U32, elements)
    }

    fn place_workgroup_variables(&mut self, info: &FunctionInfo) -> Result<()> {
        for (handle, variable) in self.module.global_variables.iter() {
            if variable.space != AddressSpace::WorkGroup || info[handle].is_empty() {
                continue;
            }
            let inner = &self.module.types[variable.ty].inner;
            shape::runs(self.module, inner)
                .map_err(|error| error.at(self.module.global_variables.get_span(handle)))?;
            let offset = i64::from(self.shared_bytes);
            self.globals.insert(
                handle,
                PointerTarget::Memory {
                    space: Space::Shared,
                    address: Operand::Symbol("shared"),
                    offset,
                    length: None,
                },
            );
            self.shared_bytes += inner
                .size(self.module.to_ctx())
                .next_multiple_of(VARIABLE_ALIGNMENT);
        }
        if self.shared_bytes > 0 && self.options.zero_workgroup_memory {
            self.zero_shared();
        }
        Ok(())
    }

    fn place_private_variables(&mut self, info: &FunctionInfo) -> Result<()> {
        for (handle, variable) in self.module.global_variables.iter() {
            if variable.space != AddressSpace::Private || info[handle].is_empty() {
                continue;
            }
            let span = self.module.global_variables.get_span(handle);
            let inner = self.module.types[variable.ty].inner.clone();
            let in_memory = self.placement.private_is_indexed(handle);
            let place = self
                .new_variable(&inner, in_memory)
                .map_err(|error| error.at(span))?;
            match variable.init {
                Some(init) => {
                    let values = self.constant(init)?;
                    self.store(&place, &inner, &values)?;
                }
                None => self.store_zero(&place, &inner)?,
            }
            self.globals.insert(handle, place);
        }
        Ok(())
    }

    /// Places and initialises the variables of the frame's function; `None` is the entry point.
    pub fn place_locals(&mut self, function: Option<Handle<Function>>) -> Result<()> {
        let body = self.frame.function;
        for (handle, variable) in body.local_variables.iter() {
            let span = body.local_variables.get_span(handle);
            let inner = self.module.types[variable.ty].inner.clone();
            let in_memory = self.placement.local_is_indexed(function, handle);
            let place = self
                .new_variable(&inner, in_memory)
                .map_err(|error| error.at(span))?;
            match variable.init {
                Some(init) => {
                    let values = self.value(init)?;
                    self.store(&place, &inner, &values)?;
                }
                None => self.store_zero(&place, &inner)?,
            }
            self.frame.locals.insert(handle, place);
        }
        Ok(())
    }

    /// A variable in registers, or in local memory if its arrays are indexed at run time or it is
    /// large.
    fn new_variable(&mut self, inner: &TypeInner, indexed: bool) -> Result<PointerTarget> {
        if (indexed && shape::holds_array(self.module, inner))
            || shape::count(self.module, inner)? > REGISTER_SCALARS
        {
            return self.new_local(inner);
        }
        let scalars = shape::scalars(self.module, inner)?;
        self.variables.push(
            scalars
                .iter()
                .map(|&scalar| self.writer.register(scalar))
                .collect(),
        );
        Ok(PointerTarget::Registers {
            variable: self.variables.len() - 1,
            first: 0,
            dynamic_indices: Vec::new(),
        })
    }

    /// Space in local memory.
    pub fn new_local(&mut self, inner: &TypeInner) -> Result<PointerTarget> {
        shape::runs(self.module, inner)?;
        let offset = i64::from(self.local_bytes);
        self.local_bytes += inner
            .size(self.module.to_ctx())
            .next_multiple_of(VARIABLE_ALIGNMENT);
        Ok(PointerTarget::Memory {
            space: Space::Local,
            address: Operand::Symbol("local"),
            offset,
            length: None,
        })
    }

    fn store_zero(&mut self, place: &PointerTarget, inner: &TypeInner) -> Result<()> {
        let zeros: Vec<Operand> = shape::scalars(self.module, inner)?
            .into_iter()
            .map(crate::cast::zero)
            .collect();
        match place {
            PointerTarget::Memory {
                address, offset, ..
            } if zeros.len() > REGISTER_SCALARS => {
                let bytes = inner
                    .size(self.module.to_ctx())
                    .next_multiple_of(VARIABLE_ALIGNMENT);
                let base = self.writer.in_register(*address);
                let base = self
                    .writer
                    .add(Scalar::I64, base, Operand::u64(offset.cast_unsigned()));
                self.zero_words(Space::Local, base, Operand::u32(0), bytes, 4);
                Ok(())
            }
            _ => self.store(place, inner, &zeros),
        }
    }

    /// Zeroes the workgroup's variables, all invocations together.
    fn zero_shared(&mut self) {
        let [x, y, z] = self.entry.workgroup_size;
        let index = self.local_index();
        let first = self.writer.shift_left(Scalar::U32, index, Operand::u32(2));
        let base = self.writer.in_register(Operand::Symbol("shared"));
        self.zero_words(Space::Shared, base, first, self.shared_bytes, 4 * x * y * z);
        self.writer.line(format_args!("bar.sync 0"));
    }

    /// Stores zero words at `base` + `first`, `first` + `step` … below `bytes`.
    fn zero_words(&mut self, space: Space, base: Operand, first: Operand, bytes: u32, step: u32) {
        let w = &mut self.writer;
        let offset = w.register(Scalar::U32);
        w.assign(offset, first);
        let (head, done) = (w.label(), w.label());
        w.place(head);
        let beyond = w.compare(
            crate::arithmetic::Comparison::Ge,
            Scalar::U32,
            offset,
            Operand::u32(bytes),
        );
        w.branch_if(beyond, done);
        let wide = w.op("cvt.u64.u32", Scalar::U64, &[offset]);
        let address = w.add(Scalar::I64, base, wide);
        w.line(format_args!("st.{}.b32 [{address}], 0", space.name()));
        w.op_to("add.u32", offset, &[offset, Operand::u32(step)]);
        w.branch(head);
        w.place(done);
    }

    /// The entry point's text around its body.
    fn assemble(self) -> Kernel {
        let (declarations, body) = self.writer.finish();
        let entry = entry_name(&self.entry.name);
        let dynamic = self.shared_bytes > STATIC_SHARED_BYTES;
        let [x, y, z] = self.entry.workgroup_size;
        let mut ptx = String::from(".version 7.0\n.target sm_75\n.address_size 64\n\n");
        if dynamic {
            ptx += ".extern .shared .align 16 .b8 shared[];\n\n";
        }
        let parameters: Vec<String> = (0..self.parameters.len())
            .map(|i| format!("\t.param .u64 p{i}_address,\n\t.param .u64 p{i}_bytes"))
            .collect();
        let _ = writeln!(
            ptx,
            ".visible .entry {entry}(\n{}\n)\n.reqntid {x}, {y}, {z}\n{{",
            parameters.join(",\n")
        );
        ptx += &declarations;
        if self.shared_bytes > 0 && !dynamic {
            let _ = writeln!(
                ptx,
                "\t.shared .align 16 .b8 shared[{}];",
                self.shared_bytes
            );
        }
        if self.local_bytes > 0 {
            let _ = writeln!(ptx, "\t.local .align 16 .b8 local[{}];", self.local_bytes);
        }
        let _ = write!(ptx, "\n{body}\tret;\n}}\n");
        Kernel {
            ptx,
            entry,
            workgroup_size: self.entry.workgroup_size,
            static_shared_bytes: if dynamic { 0 } else { self.shared_bytes },
            dynamic_shared_bytes: if dynamic { self.shared_bytes } else { 0 },
            bindings: self.parameters,
        }
    }
}

/// The name as a PTX identifier: other characters become `_`, and names that could conflict with
/// names of PTX get a prefix.
fn entry_name(name: &str) -> String {
    let plain: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    format!("wgsl_{plain}")
}
