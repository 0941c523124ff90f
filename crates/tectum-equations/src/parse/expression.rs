//! Expressions with the dimension of each part.

use tectum::Result;

use super::{KEYWORDS, Meaning, Parser};
use crate::diagnostic::Span;
use crate::expression::{Id, Node, Variable};
use crate::lexer::Kind;
use crate::operation::{BinaryOp, Comparison, UnaryOp};
use crate::unit::{Dimension, Unit};

/// What a part of an expression is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Type {
    /// A number of a dimension.
    Number(Dimension),
    /// The number 0 without a unit, which is a number of any dimension.
    Zero,
    /// True or false.
    Condition,
}

/// A checked part of an expression.
#[derive(Debug, Clone, Copy)]
pub(super) struct Typed {
    pub id: Id,
    pub ty: Type,
    pub span: Span,
}

/// Maximum depth of parentheses and calls.
const MAX_DEPTH: usize = 100;

/// Functions of one plain number that give a plain number.
const PLAIN: [(&str, UnaryOp); 9] = [
    ("sin", UnaryOp::Sin),
    ("cos", UnaryOp::Cos),
    ("tan", UnaryOp::Tan),
    ("asin", UnaryOp::Asin),
    ("acos", UnaryOp::Acos),
    ("atan", UnaryOp::Atan),
    ("exp", UnaryOp::Exp),
    ("log", UnaryOp::Log),
    ("tanh", UnaryOp::Tanh),
];

/// The other functions, with the number of their arguments.
const OTHERS: [(&str, usize); 7] = [
    ("sqrt", 1),
    ("abs", 1),
    ("sign", 1),
    ("atan2", 2),
    ("min", 2),
    ("max", 2),
    ("clamp", 3),
];

pub(super) fn is_function(name: &str) -> bool {
    PLAIN.iter().any(|(known, _)| *known == name) || OTHERS.iter().any(|(known, _)| *known == name)
}

impl Parser<'_> {
    /// A number.
    pub(super) fn expression(&mut self) -> Result<Typed> {
        let value = self.either()?;
        if value.ty == Type::Condition {
            self.fail(value.span, "this is a condition; expected a number")
        } else {
            Ok(value)
        }
    }

    /// A condition.
    pub(super) fn condition(&mut self) -> Result<Id> {
        let value = self.either()?;
        if matches!(self.peek(), Kind::Symbol("=" | "==")) {
            return self.fail(self.span(), "numbers are compared with <, <=, > and >=; two of them make a band: x > -1 and x < 1");
        }
        if value.ty == Type::Condition {
            Ok(value.id)
        } else {
            self.fail(
                value.span,
                "this is a number; expected a condition such as x > 1",
            )
        }
    }

    /// Refuses a number of another dimension.
    pub(super) fn needs(&self, value: &Typed, dimension: Dimension, what: &str) -> Result<()> {
        match value.ty {
            Type::Zero => Ok(()),
            Type::Number(own) if own == dimension => Ok(()),
            Type::Number(own) => self.fail(
                value.span,
                format!("{what} needs {dimension}; this is {own}"),
            ),
            Type::Condition => self.fail(
                value.span,
                format!("{what} needs {dimension}; this is a condition"),
            ),
        }
    }

    /// `if … then … else …`, or conditions joined by `or`.
    fn either(&mut self) -> Result<Typed> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return self.fail(
                self.span(),
                format!("parts of an expression are nested more than {MAX_DEPTH} deep"),
            );
        }
        let span = self.span();
        let value = if self.takes("if") {
            let condition = self.condition()?;
            self.keyword("then")?;
            let yes = self.expression()?;
            self.keyword("else")?;
            let no = self.expression()?;
            let ty = self.same(&yes, &no, "then", "else")?;
            Typed {
                id: self.expressions.add(Node::Select(condition, yes.id, no.id)),
                ty,
                span,
            }
        } else {
            let mut value = self.both()?;
            while self.takes("or") {
                let other = self.both()?;
                value = self.joined(&value, &other, Node::Or)?;
            }
            value
        };
        self.depth -= 1;
        Ok(value)
    }

    fn both(&mut self) -> Result<Typed> {
        let mut value = self.negated()?;
        while self.takes("and") {
            let other = self.negated()?;
            value = self.joined(&value, &other, Node::And)?;
        }
        Ok(value)
    }

    fn joined(&mut self, a: &Typed, b: &Typed, node: fn(Id, Id) -> Node) -> Result<Typed> {
        if let Some(number) = [a, b].into_iter().find(|part| part.ty != Type::Condition) {
            return self.fail(
                number.span,
                "this is a number; and, or and not join conditions",
            );
        }
        Ok(Typed {
            id: self.expressions.add(node(a.id, b.id)),
            ty: Type::Condition,
            span: a.span,
        })
    }

    fn negated(&mut self) -> Result<Typed> {
        let span = self.span();
        if !self.takes("not") {
            return self.comparison();
        }
        let value = self.comparison()?;
        if value.ty != Type::Condition {
            return self.fail(
                value.span,
                "this is a number; and, or and not join conditions",
            );
        }
        Ok(Typed {
            id: self.expressions.add(Node::Not(value.id)),
            ty: Type::Condition,
            span,
        })
    }

    fn comparison(&mut self) -> Result<Typed> {
        let a = self.sum()?;
        let op = match self.peek() {
            Kind::Symbol("<") => Comparison::Less,
            Kind::Symbol("<=") => Comparison::LessOrEqual,
            Kind::Symbol(">") => Comparison::Greater,
            Kind::Symbol(">=") => Comparison::GreaterOrEqual,
            _ => return Ok(a),
        };
        self.at += 1;
        let b = self.sum()?;
        self.same(&a, &b, "the left side", "the right side")?;
        Ok(Typed {
            id: self.expressions.add(Node::Compare(op, a.id, b.id)),
            ty: Type::Condition,
            span: a.span,
        })
    }

    fn sum(&mut self) -> Result<Typed> {
        let mut a = self.product()?;
        loop {
            let op = match self.peek() {
                Kind::Symbol("+") => BinaryOp::Add,
                Kind::Symbol("-") => BinaryOp::Subtract,
                _ => return Ok(a),
            };
            self.at += 1;
            let b = self.product()?;
            let ty = self.same(&a, &b, "the left side", "the right side")?;
            a = self.binary(op, &a, &b, ty);
        }
    }

    fn product(&mut self) -> Result<Typed> {
        let mut a = self.signed()?;
        loop {
            let op = match self.peek() {
                Kind::Symbol("*") => BinaryOp::Multiply,
                Kind::Symbol("/") => BinaryOp::Divide,
                _ => return Ok(a),
            };
            self.at += 1;
            let b = self.signed()?;
            let (own, other) = (self.dimension(&a)?, self.dimension(&b)?);
            let combined = if op == BinaryOp::Multiply {
                own.times(other)
            } else {
                own.over(other)
            };
            let combined = combined.ok_or_else(|| {
                self.source
                    .error(a.span, "the unit's exponents are too large")
            })?;
            a = self.binary(op, &a, &b, Type::Number(combined));
        }
    }

    /// `-x^2` is −(x²).
    fn signed(&mut self) -> Result<Typed> {
        let span = self.span();
        let mut is_negative = false;
        while let Kind::Symbol(sign @ ("-" | "+")) = *self.peek() {
            is_negative ^= sign == "-";
            self.at += 1;
        }
        let value = self.power()?;
        if !is_negative {
            return Ok(value);
        }
        self.dimension(&value)?;
        let id = match self.expressions.as_constant(value.id) {
            Some(number) => self.expressions.constant(-number),
            None => self.expressions.add(Node::Unary(UnaryOp::Negate, value.id)),
        };
        Ok(Typed { id, span, ..value })
    }

    /// The exponent is a number.
    fn power(&mut self) -> Result<Typed> {
        let base = self.primary()?;
        if *self.peek() != Kind::Symbol("^") {
            return Ok(base);
        }
        self.at += 1;
        let has_parenthesis = *self.peek() == Kind::Symbol("(");
        self.at += usize::from(has_parenthesis);
        let mut exponent = self.number()?;
        if has_parenthesis && *self.peek() == Kind::Symbol("/") {
            self.at += 1;
            exponent /= self.number()?;
        }
        if has_parenthesis {
            self.symbol(")")?;
        }
        self.powered(&base, exponent)
    }

    fn powered(&mut self, base: &Typed, exponent: f64) -> Result<Typed> {
        let own = self.dimension(base)?;
        let raised = own.power(exponent).filter(|_| exponent.is_finite());
        let dimension = raised.ok_or_else(|| {
            self.source
                .error(base.span, format!("{own} has no power {exponent}"))
        })?;
        let constant = self.expressions.constant(exponent);
        let id = self
            .expressions
            .add(Node::Binary(BinaryOp::Power, base.id, constant));
        Ok(Typed {
            id,
            ty: Type::Number(dimension),
            span: base.span,
        })
    }

    fn primary(&mut self) -> Result<Typed> {
        let span = self.span();
        match self.peek().clone() {
            Kind::Number(number) => {
                self.at += 1;
                self.literal(number, span)
            }
            Kind::Symbol("(") => {
                self.at += 1;
                let value = self.either()?;
                self.symbol(")")?;
                Ok(Typed { span, ..value })
            }
            Kind::Name(name) if is_function(&name) => {
                self.at += 1;
                self.call(&name, span)
            }
            Kind::Name(name) if !KEYWORDS.contains(&name.as_str()) => {
                self.at += 1;
                self.variable(&name, span)
            }
            _ => self.fail(
                span,
                format!("expected a number, a name or (, found {}", self.shown()),
            ),
        }
    }

    /// A number with the unit that follows it: one name, or any unit in brackets.
    fn literal(&mut self, number: f64, span: Span) -> Result<Typed> {
        let unit = match self.peek().clone() {
            Kind::Symbol("[") => self.unit()?.map(|(unit, _)| unit),
            Kind::Name(name) if !KEYWORDS.contains(&name.as_str()) => Some(self.unit_factor(1)?.0),
            _ => None,
        };
        let ty = if number == 0.0 && unit.is_none() {
            Type::Zero
        } else {
            Type::Number(unit.unwrap_or(Unit::NONE).dimension)
        };
        Ok(Typed {
            id: self
                .expressions
                .constant(number * unit.unwrap_or(Unit::NONE).scale),
            ty,
            span,
        })
    }

    fn variable(&mut self, name: &str, span: Span) -> Result<Typed> {
        self.read.insert(name.to_owned());
        let (variable, dimension) = match self.names.get(name) {
            Some(Meaning::Value(value)) => return Ok(Typed { span, ..*value }),
            Some(Meaning::State(number)) => (
                Variable::State(*number),
                self.system.states[usize::from(*number)].unit.dimension,
            ),
            Some(Meaning::Input(number)) => (
                Variable::Input(*number),
                self.system.inputs[usize::from(*number)].unit.dimension,
            ),
            None => return self.fail(span, format!("{name} is not defined above")),
        };
        Ok(Typed {
            id: self.expressions.add(Node::Variable(variable)),
            ty: Type::Number(dimension),
            span,
        })
    }

    fn call(&mut self, name: &str, span: Span) -> Result<Typed> {
        self.symbol("(")?;
        let mut arguments = vec![self.expression()?];
        while *self.peek() == Kind::Symbol(",") {
            self.at += 1;
            arguments.push(self.expression()?);
        }
        self.symbol(")")?;
        let plain = PLAIN.iter().find(|(known, _)| *known == name);
        let needed = plain.map_or_else(
            || {
                OTHERS
                    .iter()
                    .find(|(known, _)| *known == name)
                    .map_or(1, |(_, count)| *count)
            },
            |_| 1,
        );
        if arguments.len() != needed {
            return self.fail(
                span,
                format!("{name} has {needed} arguments, given {}", arguments.len()),
            );
        }
        let x = arguments[0];
        if let Some((_, op)) = plain {
            self.needs(&x, Dimension::NONE, name)?;
            return Ok(Typed {
                id: self.expressions.add(Node::Unary(*op, x.id)),
                ty: Type::Number(Dimension::NONE),
                span,
            });
        }
        match name {
            "sqrt" => {
                let own = self.dimension(&x)?;
                let root = own.power(0.5).ok_or_else(|| {
                    self.source
                        .error(x.span, format!("{own} has no square root"))
                })?;
                Ok(Typed {
                    id: self.expressions.add(Node::Unary(UnaryOp::Sqrt, x.id)),
                    ty: Type::Number(root),
                    span,
                })
            }
            "abs" => Ok(Typed {
                id: self.expressions.add(Node::Unary(UnaryOp::Abs, x.id)),
                ty: x.ty,
                span,
            }),
            "sign" => Ok(Typed {
                id: self.expressions.add(Node::Unary(UnaryOp::Sign, x.id)),
                ty: Type::Number(Dimension::NONE),
                span,
            }),
            _ => {
                let mut ty = x.ty;
                for other in &arguments[1..] {
                    ty = self.same(&Typed { ty, ..x }, other, "the first argument", "another")?;
                }
                let binary = |parser: &mut Self, op, a: Id, b: Id| {
                    parser.expressions.add(Node::Binary(op, a, b))
                };
                let (a, b) = (x.id, arguments[1].id);
                let (id, ty) = match name {
                    "atan2" => (
                        binary(self, BinaryOp::Atan2, a, b),
                        Type::Number(Dimension::NONE),
                    ),
                    "min" => (binary(self, BinaryOp::Minimum, a, b), ty),
                    "max" => (binary(self, BinaryOp::Maximum, a, b), ty),
                    _ => {
                        let above = binary(self, BinaryOp::Maximum, a, b);
                        (binary(self, BinaryOp::Minimum, above, arguments[2].id), ty)
                    }
                };
                Ok(Typed { id, ty, span })
            }
        }
    }

    fn binary(&mut self, op: BinaryOp, a: &Typed, b: &Typed, ty: Type) -> Typed {
        Typed {
            id: self.expressions.add(Node::Binary(op, a.id, b.id)),
            ty,
            span: a.span,
        }
    }

    /// The dimension of a number; that of 0 without a unit is none.
    fn dimension(&self, value: &Typed) -> Result<Dimension> {
        match value.ty {
            Type::Number(dimension) => Ok(dimension),
            Type::Zero => Ok(Dimension::NONE),
            Type::Condition => self.fail(value.span, "this is a condition; expected a number"),
        }
    }

    /// The type of two numbers of one dimension.
    fn same(&self, a: &Typed, b: &Typed, first: &str, second: &str) -> Result<Type> {
        match (a.ty, b.ty) {
            (Type::Condition, _) => self.fail(a.span, "this is a condition; expected a number"),
            (_, Type::Condition) => self.fail(b.span, "this is a condition; expected a number"),
            (Type::Zero, ty) | (ty, Type::Zero) => Ok(ty),
            (Type::Number(own), Type::Number(other)) if own == other => Ok(a.ty),
            (Type::Number(own), Type::Number(other)) => {
                self.fail(b.span, format!("{first} is {own}, {second} is {other}"))
            }
        }
    }

    fn keyword(&mut self, word: &str) -> Result<()> {
        if self.takes(word) {
            Ok(())
        } else {
            self.fail(
                self.span(),
                format!("expected {word}, found {}", self.shown()),
            )
        }
    }
}
