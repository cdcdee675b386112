#!/usr/bin/env python3
"""Compares how molecules are read with RDKit: atoms, hydrogens, bonds, rings, aromaticity and canonical keys.

    python3 -m venv build/conform/molecules
    build/conform/molecules/bin/pip install rdkit==2026.9.1
    ninja -C build/release read_molecules
    build/conform/molecules/bin/python tools/conform_molecules.py [--seed 1] [--drawn 10000]
        [--data ../shared/data/molecules]

Reads the molecules of the tables and of RDKit's sample of the NCI's collection, each in several spellings:

- RDKit's canonical SMILES;
- another order of atoms;
- hydrogens as atoms;
- double bonds instead of small letters;
- all bonds and hydrogens explicit.

Draws further molecules: rings of three to eight atoms, fused, bridged and linked, with heteroatoms, charges and double
bonds. Compares element, hydrogens, charge, isotope, aromaticity, ring and stereocentre of each atom, and type and ring
of each bond. Two spellings must have the same key if and only if RDKit has one canonical SMILES for them. Prints
counts; exits with 1 if a case differs without a reason. If RDKit refuses a molecule's valences, it is counted, not
compared.

    build/conform/molecules/bin/python tools/conform_molecules.py --golden tests/text/molecules.golden

writes the data of the test that runs without RDKit.
"""

import argparse
import collections
import csv
import gzip
import pathlib
import random
import subprocess
import sys

import rdkit
from rdkit import Chem, RDConfig, RDLogger

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLES = ("bbbp", "esol")
BONDS = {Chem.BondType.SINGLE: "-", Chem.BondType.DOUBLE: "=", Chem.BondType.TRIPLE: "#",
         Chem.BondType.QUADRUPLE: "$", Chem.BondType.AROMATIC: ":", Chem.BondType.DATIVE: ">",
         Chem.BondType.UNSPECIFIED: "~"}
UNMARKED = Chem.ChiralType.CHI_UNSPECIFIED
# Reasons of known differences by group, and molecules that show them.
REASONS = {
    "dative": "RDKit turns a bond between a metal and an atom without free valences into a dative bond",
    "any": "several atoms * in one ring: it is open which of them have double bonds",
}
KNOWN = ("CN(C)C[C-]12C3=C4C5=C1[Fe++]23456789[C-]%10C6=C7C8=C9%10", "*1cn*[sH+]1", "C=c1*:*:*c2c1=C1CC=CC=CCN1C=*2")
SHOWN = 10


def merged(molecule):
    """Removes the hydrogens that RDKit keeps because they define the direction of a double bond."""
    parameters = Chem.RemoveHsParameters()
    parameters.removeDefiningBondStereo = True
    try:
        return Chem.RemoveHs(molecule, parameters)
    except Chem.KekulizeException:
        return None


def of_rdkit(molecule):
    atoms = [(atom.GetSymbol(), atom.GetTotalNumHs(), atom.GetFormalCharge(), int(atom.GetIsAromatic()),
              atom.GetIsotope(), int(atom.IsInRing()), int(atom.GetChiralTag() != UNMARKED))
             for atom in molecule.GetAtoms()]
    bonds = set()
    for bond in molecule.GetBonds():
        ends = (bond.GetBeginAtomIdx(), bond.GetEndAtomIdx())
        symbol = BONDS.get(bond.GetBondType(), "?")
        bonds.add((*(ends if symbol == ">" else sorted(ends)), symbol, int(bond.IsInRing())))
    return atoms, bonds


def of_program(line):
    """Atoms, bonds and the key; None if the molecule cannot be read."""
    if line.startswith("ERROR"):
        return None
    atoms, bonds, key = line.split("\t")
    fields = [word.split(",") for word in atoms.split()]
    return ([(word[0], *map(int, word[1:])) for word in fields],
            {(int(a), int(b), symbol, int(ring)) for a, b, symbol, ring in (word.split(",") for word in bonds.split())},
            key)


def key_of(molecule):
    """RDKit's canonical SMILES without chirality and bond directions, but with a mark at each stereocentre."""
    copy = Chem.Mol(molecule)
    for atom in copy.GetAtoms():
        if atom.GetChiralTag() != UNMARKED:
            atom.SetIsotope(atom.GetIsotope() + 500)
    Chem.RemoveStereochemistry(copy)
    return Chem.MolToSmiles(copy)


def shuffled(molecule, chance, **options):
    return Chem.MolToRandomSmilesVect(molecule, 1, chance.randrange(1 << 30), **options)[0]


def spellings(molecule, chance):
    """Other texts of the same molecule, by the name of the change."""
    double = Chem.Mol(molecule)
    Chem.Kekulize(double, clearAromaticFlags=True)
    return {"canonical": Chem.MolToSmiles(molecule),
            "another order": shuffled(molecule, chance),
            "hydrogens as atoms": shuffled(Chem.AddHs(molecule), chance),
            "double bonds": shuffled(double, chance, kekuleSmiles=True),
            "all written": Chem.MolToSmiles(molecule, allBondsExplicit=True, allHsExplicit=True)}


class Drawing:
    """Draws molecules of fused, bridged and linked rings."""

    ELEMENTS = ["C", "N", "O", "S", "B", "P", "Se", "Si", "*", "Te", "As"]
    WEIGHTS = [60, 14, 4, 4, 1, 1, 1, 1, 0.5, 0.3, 0.3]
    SIZES = [3, 4, 5, 5, 5, 5, 6, 6, 6, 6, 6, 7, 8]
    VALENCES = {0: 2, 5: 3, 6: 4, 7: 3, 8: 2, 14: 4, 15: 3, 16: 2, 33: 3, 34: 2, 52: 2}

    def __init__(self, chance):
        self.chance, self.molecule, self.has_any = chance, Chem.RWMol(), False

    def add_atom(self):
        element = self.chance.choices(self.ELEMENTS, self.WEIGHTS)[0]
        if element == "*" and self.has_any:
            element = "C"
        self.has_any |= element == "*"
        atom = Chem.Atom(0 if element == "*" else element)
        if element != "*" and self.chance.random() < 0.05:
            atom.SetFormalCharge(self.chance.choice([1, -1]))
        return self.molecule.AddAtom(atom)

    def add_chain(self, first, count, last):
        for _ in range(count):
            atom = self.add_atom()
            self.molecule.AddBond(first, atom, Chem.BondType.SINGLE)
            first = atom
        if last is not None and self.molecule.GetBondBetweenAtoms(first, last) is None and first != last:
            self.molecule.AddBond(first, last, Chem.BondType.SINGLE)
        return first

    def add_ring(self):
        bond = self.chance.choice(list(self.molecule.GetBonds()))
        first, second = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()
        size, way = self.chance.choice(self.SIZES), self.chance.random()
        if way < 0.75:
            self.add_chain(first, size - 2, second)
        elif way < 0.85:
            self.add_chain(first, self.chance.randint(1, 2), self.chance.randrange(self.molecule.GetNumAtoms()))
        else:
            start = self.add_chain(first, 1, None)
            self.add_chain(start, size - 1, start)

    def free(self, atom):
        valence, charge = self.VALENCES[atom.GetAtomicNum()], atom.GetFormalCharge()
        if atom.GetAtomicNum() in (6, 14):
            valence -= abs(charge)
        elif atom.GetAtomicNum() == 5:
            valence -= charge
        else:
            valence += charge
        return valence - sum(int(bond.GetBondTypeAsDouble()) for bond in atom.GetBonds())

    def draw(self):
        """SMILES, or None if the bonds exceed the valences of the drawn atoms."""
        start = self.add_atom()
        self.add_chain(start, self.chance.choice(self.SIZES) - 1, start)
        for _ in range(self.chance.choice([0, 0, 1, 1, 2, 3, 4, 5])):
            self.add_ring()
        for _ in range(self.chance.choice([0, 0, 1, 2])):
            atom = self.chance.randrange(self.molecule.GetNumAtoms())
            self.molecule.AddBond(atom, self.add_atom(),
                                  self.chance.choice([Chem.BondType.SINGLE, Chem.BondType.DOUBLE]))
        if any(self.free(atom) < 0 for atom in self.molecule.GetAtoms()):
            return None
        bonds, share = list(self.molecule.GetBonds()), self.chance.choice([0.3, 0.8, 1, 1, 1])
        self.chance.shuffle(bonds)
        for bond in bonds:
            ends = (bond.GetBeginAtom(), bond.GetEndAtom())
            is_open = all(self.free(atom) > 0 and all(own.GetBondTypeAsDouble() == 1 for own in atom.GetBonds())
                          for atom in ends)
            if is_open and self.chance.random() < share:
                bond.SetBondType(Chem.BondType.DOUBLE)
        self.molecule.UpdatePropertyCache(strict=False)
        return Chem.MolToSmiles(self.molecule.GetMol(), canonical=False)


class Comparison:
    def __init__(self, program):
        self.program, self.counts, self.told = program, collections.Counter(), 0

    def read(self, texts):
        run = subprocess.run([self.program], input="".join(f"{text}\n" for text in texts), check=True,
                             capture_output=True, text=True)
        return [of_program(line) for line in run.stdout.splitlines()]

    def count(self, title, agrees, text, detail, reason=None):
        outcome = "agree" if agrees else "explained" if reason else "differ"
        self.counts[title, outcome] += 1
        if not agrees and self.told < SHOWN:
            self.told += 1
            print(f"{outcome if reason else 'DIFFERS':9} {title}: {text}: {REASONS[reason] if reason else detail}",
                  flush=True)

    def compare(self, cases):
        """Compares cases: (title, text, RDKit's molecule)."""
        read = self.read([text for _, text, _ in cases])
        ours, theirs = {}, {}
        for (title, text, molecule), found in zip(cases, read, strict=True):
            if found is None:
                self.count(title, False, text, "is refused")
                continue
            atoms, bonds = of_rdkit(molecule)
            self.count(title, (atoms, bonds) == found[:2], text,
                       f"ours {sorted(set(found[0]) - set(atoms))} {sorted(found[1] - bonds)}, "
                       f"RDKit's {sorted(set(atoms) - set(found[0]))} {sorted(bonds - found[1])}",
                       reason_of(atoms, bonds))
            key = key_of(molecule)
            ours.setdefault(found[2], {}).setdefault(key, text)
            theirs.setdefault(key, {}).setdefault(found[2], (text, reason_of(atoms, bonds)))
        for key, texts in theirs.items():
            text, reason = next(iter(texts.values()))
            self.count("one key for all spellings", len(texts) == 1, text, f"keys {list(texts)}", reason)
        for key, texts in ours.items():
            self.count("one molecule for a key", len(texts) == 1, key, f"molecules {list(texts.values())}")

    def finish(self):
        titles = list(dict.fromkeys(title for title, _ in self.counts))
        for title in titles:
            figures = [f"{self.counts[title, outcome]:6} {outcome}" for outcome in ("agree", "explained", "differ")]
            print(f"{title:27} {', '.join(figures)}")
        total = {outcome: sum(count for (_, own), count in self.counts.items() if own == outcome)
                 for outcome in ("agree", "explained", "differ")}
        print(f"{total['agree']} agree, {total['explained']} explained, {total['differ']} differ")
        return 1 if total["differ"] or not total["agree"] else 0


def reason_of(atoms, bonds):
    if any(symbol == ">" for _, _, symbol, _ in bonds):
        return "dative"
    if sum(atom[0] == "*" for atom in atoms) > 1:
        return "any"
    return None


def table_texts(folder):
    for name in TABLES:
        with gzip.open(folder / f"{name}.csv.gz", "rt", encoding="utf-8") as file:
            yield from (row["smiles"].strip() for row in csv.DictReader(file))


def sample_texts():
    """SMILES of a file in RDKit's package."""
    lines = pathlib.Path(RDConfig.RDDataDir, "NCI/first_5K.smi").read_text(encoding="utf-8").splitlines()
    return [line.split()[0] for line in lines if line.strip()]


def drawn_texts(count, chance):
    while count > 0:
        text = Drawing(chance).draw()
        molecule = None if text is None else Chem.MolFromSmiles(text)
        # Few random rings are aromatic, so most molecules without aromatic atoms are dropped.
        if molecule is not None and (chance.random() < 0.01 or any(a.GetIsAromatic() for a in molecule.GetAtoms())):
            count -= 1
            yield text


def cases_of(texts, title, chance):
    """Cases of the texts and of their other spellings, and the number of texts that RDKit refuses."""
    cases, refused = [], 0
    for text in texts:
        molecule = Chem.MolFromSmiles(text)
        if molecule is None:
            refused += 1
            continue
        try:
            others = spellings(molecule, chance)
        except (Chem.KekulizeException, RuntimeError):
            others = {}
        for name, other in {title: text, **others}.items():
            again = Chem.MolFromSmiles(other)
            plain = None if again is None else merged(again)
            if plain is not None:
                cases.append((name if name == title else f"{title}: {name}", other, plain))
    return cases, refused


def write_golden(path, options, chance):
    """Writes a line per text: number of the molecule, text, RDKit's atoms and bonds in the form of read_molecules."""
    texts = list(table_texts(options.data))[::200] + list(drawn_texts(30, chance))
    lines = []
    for number, text in enumerate(texts):
        for title, other, molecule in cases_of([text], "", chance)[0]:
            if title.endswith(("canonical", "another order", "all written")):
                continue
            atoms, bonds = of_rdkit(molecule)
            lines.append("\t".join((str(number), other, " ".join(",".join(map(str, atom)) for atom in atoms),
                                    " ".join(",".join(map(str, bond)) for bond in sorted(bonds)))))
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build/release/attend",
                        help="next to it is read_molecules")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--drawn", type=int, default=3000, help="molecules that are drawn")
    parser.add_argument("--golden", type=pathlib.Path, help="write this file and compare nothing")
    parser.add_argument("--data", type=pathlib.Path, default=ROOT.parent / "shared/data/molecules")
    options = parser.parse_args()
    RDLogger.DisableLog("rdApp.*")
    chance = random.Random(options.seed)
    if options.golden:
        write_golden(options.golden, options, chance)
        return 0
    comparison = Comparison(options.program.resolve().parent / "read_molecules")
    print(f"rdkit {rdkit.__version__}, seed {options.seed}")
    if options.data.exists():
        cases, refused = cases_of(table_texts(options.data), "tables", chance)
        print(f"{refused} molecules of the tables are refused by RDKit")
        comparison.compare(cases)
    for title, texts in (("sample", sample_texts()), ("drawn", drawn_texts(options.drawn, chance)),
                         ("known", KNOWN)):
        cases, refused = cases_of(texts, title, chance)
        if refused:
            print(f"{refused} molecules of the {title} are refused by RDKit")
        comparison.compare(cases)
    return comparison.finish()


if __name__ == "__main__":
    sys.exit(main())
