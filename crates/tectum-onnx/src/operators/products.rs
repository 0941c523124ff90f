//! Products of matrices.

use std::collections::BTreeMap;

use tectum::{Error, Result};
use tectum_graph::{BinaryOp, Factor, IntegerOp, Node, Reduction};

use super::Family;
use super::matrix::product;
use super::quantize::{dequantized_product, integer_product};
use crate::emit::{Call, Emit, Value};

pub(super) const FAMILY: Family = &[("Einsum", einsum), ("Gemm", gemm), ("MatMul", matmul)];

/// The two factors, which are of one type.
fn factors<'a>(call: &'a Call<'_>) -> Result<[&'a Value; 2]> {
    let (a, b) = (call.input(0)?, call.input(1)?);
    if a.element == b.element {
        Ok([a, b])
    } else {
        Err(Error::data(format!(
            "a product of {} and {}",
            a.element, b.element
        )))
    }
}

fn matmul(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let [a, b] = factors(call)?;
    if let Some(value) = dequantized_product(emit, [a, b], false, None)? {
        return Ok(vec![value]);
    }
    Ok(vec![if a.element.is_float() {
        product(emit, a, b)?
    } else {
        integer_product(emit, a, b)?
    }])
}

/// alpha·A·B + beta·C, where A and B may be transposed.
fn gemm(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let [a, b] = factors(call)?;
    let element = a.element;
    if call.opset < 7 {
        // C repeats if its shape differs, with or without it.
        call.attributes.int("broadcast")?;
    }
    let (alpha, beta) = (
        call.attributes.float_or("alpha", 1.0)?,
        call.attributes.float_or("beta", 1.0)?,
    );
    let (a_turned, b_turned) = (
        call.attributes.flag("transA", false)?,
        call.attributes.flag("transB", false)?,
    );
    let (&[a_rows, a_cols], &[b_rows, b_cols]) = (&a.dims[..], &b.dims[..]) else {
        return Err(Error::data(format!(
            "{:?} times {:?}: matrices are needed",
            a.dims, b.dims
        )));
    };
    let (m, n) = (
        if a_turned { a_cols } else { a_rows },
        if b_turned { b_rows } else { b_cols },
    );
    if !element.is_float() {
        let turned = |emit: &mut Emit<'_>, value: &Value, is_turned| {
            if is_turned {
                emit.permute(value, &[1, 0])
            } else {
                Ok(value.clone())
            }
        };
        let (a, b) = (turned(emit, a, a_turned)?, turned(emit, b, b_turned)?);
        return integer_gemm(emit, call, [&a, &b], [alpha, beta]);
    }
    let is_plain = !a_turned && alpha == 1.0 && (beta == 1.0 || call.optional(2).is_none());
    if is_plain && let Some(value) = dequantized_product(emit, [a, b], b_turned, call.optional(2))?
    {
        return Ok(vec![value]);
    }
    let (a, b) = (emit.node(a)?, emit.node(b)?);
    let factor = |node: Node, turned: bool| -> Factor {
        if turned {
            node.transpose()
        } else {
            node.into()
        }
    };
    let mut node = emit
        .builder
        .matmul(factor(a, a_turned), factor(b, b_turned))?;
    if alpha != 1.0 {
        node = emit.builder.scale(node, alpha)?;
    }
    if call.optional(2).is_some() && beta != 0.0 {
        let c = emit.input(call, 2)?;
        let c = if beta == 1.0 {
            c
        } else {
            emit.with(BinaryOp::Mul, c, beta)?
        };
        node = emit.builder.add(node, c)?;
    }
    Ok(vec![emit.shaped(node, element, &[m, n])?])
}

/// alpha·A·B + beta·C of integers, where alpha and beta are integers.
fn integer_gemm(
    emit: &mut Emit<'_>,
    call: &Call<'_>,
    [a, b]: [&Value; 2],
    [alpha, beta]: [f32; 2],
) -> Result<Vec<Value>> {
    let element = a.element;
    if [alpha, beta]
        .iter()
        .any(|factor| factor.fract() != 0.0 || factor.abs() > 1e9)
    {
        return Err(Error::unsupported(format!(
            "a product of {element} times alpha {alpha} and beta {beta}"
        )));
    }
    let product = integer_product(emit, a, b)?;
    let mut node = emit.node(&product)?;
    let scaled = |emit: &mut Emit<'_>, node: Node, factor: f32| {
        let factor = emit.integer(factor as i32)?;
        emit.builder.integer(IntegerOp::Mul, node, Some(factor))
    };
    if alpha != 1.0 {
        node = scaled(emit, node, alpha)?;
    }
    if call.optional(2).is_some() && beta != 0.0 {
        let c = emit.input(call, 2)?;
        let c = if beta == 1.0 {
            c
        } else {
            scaled(emit, c, beta)?
        };
        node = emit.builder.integer(IntegerOp::Add, node, Some(c))?;
    }
    let node = emit.wrap(node, element)?;
    Ok(vec![emit.shaped(node, element, &product.dims)?])
}

/// Sums over products of elements, by letters for the axes.
fn einsum(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let equation: String = call
        .attributes
        .string_or("equation", "")?
        .chars()
        .filter(|letter| !letter.is_whitespace())
        .collect();
    let fault = |reason: &str| Error::data(format!("equation {equation:?}: {reason}"));
    let (terms, result) = match equation.split_once("->") {
        Some((terms, result)) => (terms, Some(result)),
        None => (&equation[..], None),
    };
    let terms: Vec<&str> = terms.split(',').collect();
    if terms.len() != call.inputs.len() {
        return Err(fault("it has another number of operands"));
    }
    // An ellipsis represents as many axes as the others leave; they get letters from another
    // alphabet.
    let mut hidden = 0;
    let mut operands = Vec::new();
    for (index, term) in terms.iter().enumerate() {
        let value = call.input(index)?;
        let named = term.replace("...", "").chars().count();
        let free = value
            .rank()
            .checked_sub(named)
            .ok_or_else(|| fault("an operand has fewer axes than letters"))?;
        if !term.contains("...") && free > 0 {
            return Err(fault("an operand has more axes than letters"));
        }
        hidden = hidden.max(if term.contains("...") { free } else { 0 });
        operands.push((value.clone(), term.to_string(), free));
    }
    if hidden > tectum_graph::MAX_RANK {
        return Err(fault("an ellipsis is of too many axes"));
    }
    let ellipsis = |count: usize| -> String {
        (hidden - count..hidden)
            .map(|place| char::from(b'0' + place as u8))
            .collect()
    };
    let mut counts: BTreeMap<char, usize> = BTreeMap::new();
    let mut sizes: BTreeMap<char, usize> = BTreeMap::new();
    let mut labelled = Vec::new();
    for (value, term, free) in operands {
        let letters: Vec<char> = term.replace("...", &ellipsis(free)).chars().collect();
        if !value.element.is_float() {
            return Err(Error::unsupported(format!(
                "a product of {}",
                value.element
            )));
        }
        for (letter, size) in letters.iter().zip(&value.dims) {
            *counts.entry(*letter).or_default() += 1;
            let known = sizes.entry(*letter).or_insert(*size);
            if *known == 1 {
                *known = *size;
            } else if *size != 1 && *size != *known {
                return Err(fault(&format!("axis {letter} is {known} and {size}")));
            }
        }
        labelled.push((value, letters));
    }
    let result: Vec<char> = match result {
        Some(result) => result.replace("...", &ellipsis(hidden)).chars().collect(),
        None => counts
            .iter()
            .filter(|(letter, count)| **count == 1 || letter.is_ascii_digit())
            .map(|(letter, _)| *letter)
            .collect(),
    };
    if result.iter().any(|letter| !sizes.contains_key(letter)) {
        return Err(fault("the result has an axis of no operand"));
    }
    let element = labelled[0].0.element;
    let all: Vec<Vec<char>> = labelled
        .iter()
        .map(|(_, letters)| letters.clone())
        .collect();
    let mut factors = labelled.into_iter().enumerate();
    let (_, (value, letters)) = factors.next().ok_or_else(|| fault("no operands"))?;
    let (mut left, mut left_letters) = diagonal(emit, value, letters)?;
    for (index, (value, letters)) in factors {
        let right = diagonal(emit, value, letters)?;
        let needed: Vec<char> = all[index + 1..]
            .iter()
            .flatten()
            .chain(&result)
            .copied()
            .collect();
        (left, left_letters) = contract(emit, (left, left_letters), right, &needed, &sizes)?;
    }
    let gone: Vec<usize> = (0..left_letters.len())
        .filter(|axis| !result.contains(&left_letters[*axis]))
        .collect();
    let node = emit.node(&left)?;
    let node = emit.builder.reduce_axes(Reduction::Sum, node, &gone)?;
    let kept: Vec<char> = left_letters
        .iter()
        .copied()
        .filter(|letter| result.contains(letter))
        .collect();
    let dims: Vec<usize> = kept.iter().map(|letter| sizes[letter]).collect();
    let value = emit.shaped(node, element, &dims)?;
    let order: Vec<usize> = result
        .iter()
        .filter_map(|letter| kept.iter().position(|other| other == letter))
        .collect();
    if order.len() != result.len() {
        return Err(fault("an axis of the result is named twice"));
    }
    Ok(vec![emit.permute(&value, &order)?])
}

/// Letters that occur twice name the diagonal.
fn diagonal(
    emit: &mut Emit<'_>,
    value: Value,
    mut letters: Vec<char>,
) -> Result<(Value, Vec<char>)> {
    let mut value = value;
    while let Some((first, second)) = (0..letters.len()).find_map(|first| {
        (first + 1..letters.len())
            .find(|second| letters[*second] == letters[first])
            .map(|second| (first, second))
    }) {
        let size = value.dims[first];
        let mut order: Vec<usize> = (0..value.rank())
            .filter(|axis| *axis != first && *axis != second)
            .collect();
        order.extend([first, second]);
        let turned = emit.permute(&value, &order)?;
        let mut dims = turned.dims.clone();
        dims.truncate(value.rank() - 2);
        dims.push(size * size);
        let flat = emit.reshape(&turned, &dims)?;
        let places: Vec<usize> = (0..size).map(|place| place * (size + 1)).collect();
        value = emit.take(&flat, dims.len() - 1, &places)?;
        let letter = letters[first];
        letters.remove(second);
        letters.remove(first);
        letters.push(letter);
    }
    Ok((value, letters))
}

type Labelled = (Value, Vec<char>);

/// The product of two operands, summed over the letters that nothing else needs, as a batch of
/// matrix products.
fn contract(
    emit: &mut Emit<'_>,
    a: Labelled,
    b: Labelled,
    needed: &[char],
    sizes: &BTreeMap<char, usize>,
) -> Result<Labelled> {
    let ((a, a_letters), (b, b_letters)) = (a, b);
    let shared = |letter: &char| a_letters.contains(letter) && b_letters.contains(letter);
    let batch: Vec<char> = a_letters
        .iter()
        .copied()
        .filter(|letter| shared(letter) && needed.contains(letter))
        .collect();
    let summed: Vec<char> = a_letters
        .iter()
        .copied()
        .filter(|letter| shared(letter) && !needed.contains(letter))
        .collect();
    let own_a: Vec<char> = a_letters
        .iter()
        .copied()
        .filter(|letter| !shared(letter))
        .collect();
    let own_b: Vec<char> = b_letters
        .iter()
        .copied()
        .filter(|letter| !shared(letter))
        .collect();
    let count = |letters: &[char]| {
        letters
            .iter()
            .map(|letter| sizes[letter])
            .product::<usize>()
    };
    let mut arranged = |value: &Value, letters: &[char], order: [&[char]; 3]| -> Result<Value> {
        let order = order.concat();
        let axes: Vec<usize> = order
            .iter()
            .filter_map(|letter| letters.iter().position(|other| other == letter))
            .collect();
        let turned = emit.permute(value, &axes)?;
        let dims: Vec<usize> = order.iter().map(|letter| sizes[letter]).collect();
        emit.repeat(&turned, &dims)
    };
    let a = arranged(&a, &a_letters, [&batch, &own_a, &summed])?;
    let b = arranged(&b, &b_letters, [&batch, &summed, &own_b])?;
    let a = emit.reshape(&a, &[count(&batch), count(&own_a), count(&summed)])?;
    let b = emit.reshape(&b, &[count(&batch), count(&summed), count(&own_b)])?;
    let (a_node, b_node) = (emit.node(&a)?, emit.node(&b)?);
    let node = emit.builder.matmul(a_node, b_node)?;
    let letters = [&batch[..], &own_a, &own_b].concat();
    let dims: Vec<usize> = letters.iter().map(|letter| sizes[letter]).collect();
    Ok((emit.shaped(node, a.element, &dims)?, letters))
}
