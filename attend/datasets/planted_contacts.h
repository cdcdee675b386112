#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace attend {

// A family of proteins of one length in which contacting residues change together, as in real
// families (Goebel et al. 1994). Each of the 20 residues has a partner, drawn once; the second
// residue of a contact is the partner of the first in 9 of 10 proteins. The residues of a contact
// are at least six positions apart, and each residue has at most one contact. All other residues
// are drawn independently, half of them from four that the position prefers.
struct PlantedContacts {
  int64_t count = 5000;   // proteins for training
  int64_t valid = 500;    // proteins for validation
  int64_t length = 60;    // residues per protein
  int64_t contacts = 15;  // from 1 to length / 2 - 5, which always fits
  uint64_t seed = 1;
};

// Positions of two contacting residues, from 1, ascending.
using Contact = std::pair<int64_t, int64_t>;

// Writes train.fasta, valid.fasta and contacts.tsv, with one contact per line, into a folder, which
// is created if missing. Returns the contacts in ascending order. Error if sizes are out of range
// or a file cannot be written.
std::vector<Contact> write_planted_contacts(const std::string& folder,
                                            const PlantedContacts& planted);

}  // namespace attend
