//! Variables that cannot be in registers: those whose arrays are indexed at run time, here or in a
//! callee.

use std::collections::HashSet;

use naga::{
    AddressSpace, Block, EntryPoint, Expression, Function, GlobalVariable, Handle, LocalVariable,
    Module, Statement, TypeInner,
};

/// The variable that a pointer is derived from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Root {
    Local(Handle<LocalVariable>),
    Argument(u32),
    Private(Handle<GlobalVariable>),
}

/// The indexed roots of every function of a module and of one entry point.
pub(crate) struct Placement {
    functions: Vec<HashSet<Root>>,
    entry: HashSet<Root>,
    private: HashSet<Handle<GlobalVariable>>,
}

impl Placement {
    pub fn of(module: &Module, entry: &EntryPoint) -> Placement {
        let mut placement = Placement {
            functions: Vec::new(),
            entry: HashSet::new(),
            private: HashSet::new(),
        };
        // A validated module lists callees before their callers.
        for (_, function) in module.functions.iter() {
            let roots = placement.roots(module, function);
            placement.functions.push(roots);
        }
        placement.entry = placement.roots(module, &entry.function);
        placement
    }

    pub fn private_is_indexed(&self, variable: Handle<GlobalVariable>) -> bool {
        self.private.contains(&variable)
    }

    /// For a variable of a function, or of the entry point.
    pub fn local_is_indexed(
        &self,
        function: Option<Handle<Function>>,
        variable: Handle<LocalVariable>,
    ) -> bool {
        let roots = function.map_or(&self.entry, |function| &self.functions[function.index()]);
        roots.contains(&Root::Local(variable))
    }

    fn roots(&mut self, module: &Module, function: &Function) -> HashSet<Root> {
        let mut roots = HashSet::new();
        for (_, expression) in function.expressions.iter() {
            if let Expression::Access { base, .. } = *expression
                && let Some(root) = root(module, function, base)
                && is_array(module, function, base)
            {
                roots.insert(root);
            }
        }
        self.add_calls(module, function, &function.body, &mut roots);
        for root in &roots {
            if let Root::Private(variable) = root {
                self.private.insert(*variable);
            }
        }
        roots
    }

    fn add_calls(
        &self,
        module: &Module,
        function: &Function,
        block: &Block,
        roots: &mut HashSet<Root>,
    ) {
        for statement in block {
            match statement {
                Statement::Call {
                    function: callee,
                    arguments,
                    ..
                } => {
                    for (number, &argument) in arguments.iter().enumerate() {
                        let indexed =
                            self.functions[callee.index()].contains(&Root::Argument(number as u32));
                        if let (true, Some(root)) = (indexed, root(module, function, argument)) {
                            roots.insert(root);
                        }
                    }
                }
                Statement::Block(inner) => self.add_calls(module, function, inner, roots),
                Statement::If { accept, reject, .. } => {
                    self.add_calls(module, function, accept, roots);
                    self.add_calls(module, function, reject, roots);
                }
                Statement::Switch { cases, .. } => {
                    for case in cases {
                        self.add_calls(module, function, &case.body, roots);
                    }
                }
                Statement::Loop {
                    body, continuing, ..
                } => {
                    self.add_calls(module, function, body, roots);
                    self.add_calls(module, function, continuing, roots);
                }
                _ => {}
            }
        }
    }
}

fn root(module: &Module, function: &Function, pointer: Handle<Expression>) -> Option<Root> {
    match function.expressions[pointer] {
        Expression::Access { base, .. } | Expression::AccessIndex { base, .. } => {
            root(module, function, base)
        }
        Expression::LocalVariable(variable) => Some(Root::Local(variable)),
        Expression::FunctionArgument(number) => Some(Root::Argument(number)),
        Expression::GlobalVariable(variable) => (module.global_variables[variable].space
            == AddressSpace::Private)
            .then_some(Root::Private(variable)),
        _ => None,
    }
}

/// Whether a pointer expression's target is an array, found by walking down from its root.
fn is_array(module: &Module, function: &Function, pointer: Handle<Expression>) -> bool {
    matches!(
        target(module, function, pointer),
        Some(TypeInner::Array { .. })
    )
}

fn target<'a>(
    module: &'a Module,
    function: &Function,
    pointer: Handle<Expression>,
) -> Option<&'a TypeInner> {
    let member = |base, index: Option<u32>| match (target(module, function, base)?, index) {
        (TypeInner::Array { base, .. }, _) => Some(&module.types[*base].inner),
        (TypeInner::Struct { members, .. }, Some(index)) => {
            Some(&module.types[members[index as usize].ty].inner)
        }
        _ => None,
    };
    match function.expressions[pointer] {
        Expression::Access { base, .. } => member(base, None),
        Expression::AccessIndex { base, index } => member(base, Some(index)),
        Expression::LocalVariable(variable) => {
            Some(&module.types[function.local_variables[variable].ty].inner)
        }
        Expression::GlobalVariable(variable) => {
            Some(&module.types[module.global_variables[variable].ty].inner)
        }
        Expression::FunctionArgument(number) => {
            match &module.types[function.arguments[number as usize].ty].inner {
                TypeInner::Pointer { base, .. } => Some(&module.types[*base].inner),
                other => Some(other),
            }
        }
        _ => None,
    }
}
