use egg::{rewrite, Analysis, Applier, DidMerge, EGraph, Id, Language, Pattern, PatternAst, Rewrite, Subst, Symbol, SymbolLang};
use std::collections::HashMap;

pub type Graph = EGraph<SymbolLang, Tensors>;

/// What a class of attributes is.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    Int(i64),
    Real(f64),
    Ints(Vec<i64>),
}

/// What is known of a tensor: 'f' float, 'i' int64, 'b' bool, 'c' complex.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    pub kind: char,
    pub sizes: Vec<i64>,
}

#[derive(Clone, Debug, Default)]
pub struct Data {
    pub literal: Option<Literal>,
    pub tensor: Option<Tensor>,
}

/// The tensors that leaves stand for, by name; for other classes, `set_tensor`.
#[derive(Clone, Debug, Default)]
pub struct Tensors {
    pub leaves: HashMap<Symbol, Tensor>,
}

/// A number as it stands in terms: reals as `format!("{:?}", x)` has them, `0.5`, `1e-5`.
fn literal(op: &str) -> Option<Literal> {
    if let Ok(i) = op.parse::<i64>() {
        return Some(Literal::Int(i));
    }
    let x = op.parse::<f64>().ok()?;
    x.is_finite().then_some(Literal::Real(x))
}

impl Analysis<SymbolLang> for Tensors {
    type Data = Data;
    fn make(egraph: &mut Graph, enode: &SymbolLang, _id: Id) -> Data {
        let mut data = Data::default();
        if enode.op.as_str() == "list" {
            let ints = enode.children().iter().map(|c| match egraph[*c].data.literal {
                Some(Literal::Int(i)) => Some(i),
                _ => None,
            });
            data.literal = ints.collect::<Option<Vec<i64>>>().map(Literal::Ints);
        } else if enode.is_leaf() {
            data.literal = literal(enode.op.as_str());
            data.tensor = egraph.analysis.leaves.get(&enode.op).cloned();
        }
        data
    }
    fn merge(&mut self, a: &mut Data, b: Data) -> DidMerge {
        let more_a = (a.literal.is_none() && b.literal.is_some()) || (a.tensor.is_none() && b.tensor.is_some());
        let more_b = (b.literal.is_none() && a.literal.is_some()) || (b.tensor.is_none() && a.tensor.is_some());
        if a.literal.is_none() {
            a.literal = b.literal;
        }
        if a.tensor.is_none() {
            a.tensor = b.tensor;
        }
        DidMerge(more_a, more_b)
    }
}

pub fn set_tensor(egraph: &mut Graph, id: Id, kind: char, sizes: &[i64]) {
    let mut data = egraph[id].data.clone();
    data.tensor = Some(Tensor { kind, sizes: sizes.to_vec() });
    egraph.set_analysis_data(id, data);
}

// ---- what the rules ask ----

type Made = Option<Vec<(&'static str, Literal)>>;

/// The other side of a rule, where `check` finds that it holds; it says what the names stand for that the pattern does not bind.
struct When {
    other: Pattern<SymbolLang>,
    check: fn(&Graph, &Subst) -> Made,
}

fn when(other: &str, check: fn(&Graph, &Subst) -> Made) -> When {
    When { other: other.parse().unwrap(), check }
}

impl Applier<SymbolLang, Tensors> for When {
    fn apply_one(&self, egraph: &mut Graph, eclass: Id, subst: &Subst, ast: Option<&PatternAst<SymbolLang>>, rule: Symbol) -> Vec<Id> {
        let Some(made) = (self.check)(egraph, subst) else { return vec![] };
        let mut subst = subst.clone();
        for (name, value) in made {
            let text = match value {
                Literal::Int(i) => i.to_string(),
                Literal::Real(x) => format!("{:?}", x),
                Literal::Ints(_) => return vec![],
            };
            let id = egraph.add(SymbolLang::leaf(text));
            subst.insert(name.parse().unwrap(), id);
        }
        self.other.apply_one(egraph, eclass, &subst, ast, rule)
    }
}

fn data<'a>(g: &'a Graph, s: &Subst, name: &str) -> Option<&'a Data> {
    Some(&g[*s.get(name.parse().ok()?)?].data)
}

/// A tensor of this kind and rank (at least: `leading`; any: None), of no empty dimension.
fn tensor<'a>(g: &'a Graph, s: &Subst, name: &str, kind: char, rank: Option<usize>, leading: bool) -> Option<&'a Tensor> {
    let t = data(g, s, name)?.tensor.as_ref()?;
    let fits = rank.map_or(true, |r| if leading { t.sizes.len() >= r } else { t.sizes.len() == r });
    (t.kind == kind && fits && t.sizes.iter().all(|&n| n >= 1)).then_some(t)
}

fn int(g: &Graph, s: &Subst, name: &str) -> Option<i128> {
    match data(g, s, name)?.literal {
        Some(Literal::Int(i)) => Some(i.into()),
        _ => None,
    }
}

fn float(g: &Graph, s: &Subst, name: &str) -> Option<f64> {
    match data(g, s, name)?.literal {
        Some(Literal::Real(x)) => Some(x),
        _ => None,
    }
}

fn ints(g: &Graph, s: &Subst, name: &str) -> Option<()> {
    matches!(data(g, s, name)?.literal, Some(Literal::Ints(_))).then_some(())
}

/// Size k, of the last ones where k is negative.
fn size(t: &Tensor, k: i64) -> Option<i128> {
    let at = if k < 0 { k + t.sizes.len() as i64 } else { k };
    t.sizes.get(usize::try_from(at).ok()?).map(|&n| n.into())
}

fn add(a: i128, b: i128) -> Option<i128> {
    a.checked_add(b)
}
fn sub(a: i128, b: i128) -> Option<i128> {
    a.checked_sub(b)
}
fn mul(a: i128, b: i128) -> Option<i128> {
    a.checked_mul(b)
}
fn quotient(a: i128, b: i128) -> Option<i128> {
    (b != 0 && a % b == 0).then(|| a / b)
}
/// With the divisor's sign.
fn mod_of(a: i128, b: i128) -> Option<i128> {
    (b != 0).then(|| ((a % b) + b) % b)
}
fn ratio(a: f64, b: f64) -> Option<f64> {
    (b != 0.0).then(|| a / b)
}
fn real(a: i128) -> f64 {
    a as f64
}
/// Equal, as reals are that literals stand for.
fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-15 * a.abs().max(b.abs())
}
fn made(a: i128) -> Option<Literal> {
    i64::try_from(a).ok().map(Literal::Int)
}
