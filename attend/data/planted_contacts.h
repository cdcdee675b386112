#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace attend {

// A family of proteins of one length, in which pairs of residues that touch each other change
// together, as those of real families do (Goebel et al. 1994): each of the 20 residues has a
// partner, drawn once, and the second residue of a contact is the partner of the first in 9 of 10
// proteins. The residues of a contact are six or more places apart, and no residue has two. All
// others are drawn one by one, half of them from four that their place prefers.
struct PlantedContacts {
  int64_t count = 5000;   // proteins to train with
  int64_t valid = 500;    // and to validate with
  int64_t length = 60;    // residues of a protein
  int64_t contacts = 15;  // from 1 to length / 2 - 5, which always find room
  uint64_t seed = 1;
};

// Two residues that touch each other, counted from 1, the one that comes first before the other.
using Contact = std::pair<int64_t, int64_t>;

// Writes train.fasta, valid.fasta and contacts.tsv, whose lines are the contacts, into a folder,
// which is created where it is missing, and returns the contacts in ascending order. Error on
// sizes out of range and where a file cannot be written.
std::vector<Contact> write_planted_contacts(const std::string& folder,
                                            const PlantedContacts& planted);

}  // namespace attend
