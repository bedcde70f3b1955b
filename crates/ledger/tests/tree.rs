//! The log against its definition, and proofs against changes of them.

use ledger::proof::{Consistency, Inclusion};
use ledger::tree::{Nodes, Tree, prove_consistency, prove_inclusion, root};
use ledger::{Error, Hash};

type Done = Result<(), Box<dyn std::error::Error>>;

fn leaf(number: u64) -> Hash {
    Hash::leaf(&number.to_le_bytes())
}

fn tree(size: u64) -> Tree {
    let mut tree = Tree::new();
    (0..size).for_each(|number| tree.push(leaf(number)));
    tree
}

/// RFC 9162, section 2.1.1, word by word.
fn definition(leaves: &[Hash]) -> Hash {
    match leaves {
        [] => Hash::empty(),
        [leaf] => *leaf,
        _ => {
            let mut left = 1;
            while left * 2 < leaves.len() {
                left *= 2;
            }
            let (left, right) = leaves.split_at(left);
            Hash::node(&definition(left), &definition(right))
        }
    }
}

fn hex(hash: Hash) -> String {
    hash.0.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Roots that other logs have of the same leaves; with another prefix or another split
/// nobody's tools could verify ours.
#[test]
fn known_roots() {
    let leaves: [&[u8]; 4] = [b"", b"\x00", b"\x10", b"\x20\x21"];
    let roots = [
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
        "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    ];
    let mut tree = Tree::new();
    for (leaf, root) in leaves.iter().zip(roots) {
        tree.push(Hash::leaf(leaf));
        assert_eq!(hex(tree.root()), root);
    }
}

/// Each size's root is the definition's, also when more leaves have come; with the bug an
/// old checkpoint would stop verifying.
#[test]
fn roots_are_as_defined() -> Done {
    let leaves: Vec<Hash> = (0..70).map(leaf).collect();
    let tree = tree(70);
    for size in 0..=70 {
        let expected = definition(leaves.get(..size).ok_or("size")?);
        assert_eq!(root(&tree, size as u64)?, expected, "size {size}");
    }
    assert_eq!(root(&tree, 71), Err(Error::Range));
    Ok(())
}

/// Each leaf of each size has a proof, and no other leaf or place has it.
#[test]
fn inclusion() -> Done {
    let tree = tree(33);
    for size in 1..=33 {
        let root = root(&tree, size)?;
        for index in 0..size {
            let proof = prove_inclusion(&tree, index, size)?;
            proof.verify(&leaf(index), &root)?;
            assert_eq!(proof.verify(&leaf(index + 1), &root), Err(Error::Proof));
            for other in (0..size).filter(|other| *other != index) {
                let moved = Inclusion {
                    index: other,
                    ..proof.clone()
                };
                assert_eq!(moved.verify(&leaf(index), &root), Err(Error::Proof));
            }
            for path in changed(&proof.path) {
                let proof = Inclusion {
                    path,
                    ..proof.clone()
                };
                assert_eq!(proof.verify(&leaf(index), &root), Err(Error::Proof));
            }
        }
    }
    assert_eq!(prove_inclusion(&tree, 5, 5), Err(Error::Range));
    assert_eq!(prove_inclusion(&tree, 5, 34), Err(Error::Range));
    Ok(())
}

/// Every log is consistent with each earlier size of it, and with no fork: a history with
/// one other leaf, wherever it is in the old part. With the bug two auditors could be
/// shown two histories.
#[test]
fn consistency() -> Done {
    let tree = tree(20);
    for new in 0..=20 {
        for old in 0..=new {
            let (old_root, new_root) = (root(&tree, old)?, root(&tree, new)?);
            let proof = prove_consistency(&tree, old, new)?;
            proof.verify(&old_root, &new_root)?;
            for path in changed(&proof.path) {
                let proof = Consistency {
                    path,
                    ..proof.clone()
                };
                assert_eq!(proof.verify(&old_root, &new_root), Err(Error::Proof));
            }
            for wrong in 0..old {
                let fork = fork(old, wrong);
                assert_eq!(proof.verify(&fork.root(), &new_root), Err(Error::Proof));
            }
        }
    }
    assert_eq!(prove_consistency(&tree, 8, 7), Err(Error::Range));
    Ok(())
}

/// A log of so many leaves, of which one is another.
fn fork(size: u64, wrong: u64) -> Tree {
    let mut tree = Tree::new();
    (0..size).for_each(|n| tree.push(leaf(if n == wrong { 1000 } else { n })));
    tree
}

/// The path with a hash altered, removed, or added anywhere.
fn changed(path: &[Hash]) -> Vec<Vec<Hash>> {
    let mut all = Vec::new();
    for place in 0..path.len() {
        let mut altered = path.to_vec();
        altered[place].0[7] ^= 1;
        all.push(altered);
        let mut shorter = path.to_vec();
        shorter.remove(place);
        all.push(shorter);
    }
    for place in 0..=path.len() {
        let mut longer = path.to_vec();
        longer.insert(place, leaf(77));
        all.push(longer);
    }
    all
}

/// A log whose leaves are all the same, so that any number of them fits in memory.
struct Same(Vec<Hash>);

impl Nodes for Same {
    fn node(&self, level: u32, _: u64) -> Option<Hash> {
        self.0.get(level as usize).copied()
    }
}

/// Proofs of a hundred million leaves have as many hashes as the number has digits in
/// base two, not more.
#[test]
fn proofs_grow_as_the_logarithm() -> Done {
    let mut levels = vec![leaf(0)];
    for level in 0..40 {
        levels.push(Hash::node(&levels[level], &levels[level]));
    }
    let (log, size) = (Same(levels), 100_000_000);
    let root = root(&log, size)?;
    for index in [0, 1, 65_535, 99_999_998, 99_999_999] {
        let proof = prove_inclusion(&log, index, size)?;
        assert!(proof.path.len() <= 27, "{} hashes", proof.path.len());
        proof.verify(&leaf(0), &root)?;
    }
    let proof = prove_consistency(&log, 99_999_999, size)?;
    assert!(proof.path.len() <= 28, "{} hashes", proof.path.len());
    Ok(())
}
