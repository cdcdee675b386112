// Answers each line of standard input with a trained model, or with an ensemble of several models.
//
//     ./dev example answer MODEL... < words.txt
#include <iostream>

#include "attend/inference/model.h"

int main(int count, char** arguments) try {
  if (count < 2) throw attend::Error("usage: answer MODEL... ; attend train makes one");
  const auto model = attend::Model::ensemble({arguments + 1, arguments + count});
  for (std::string line; std::getline(std::cin, line);)
    for (const attend::Answer& answer : model.answer({line}, {.beam = 5, .nbest = 3}))
      for (const attend::Candidate& candidate : answer.candidates)
        std::cout << line << '\t' << candidate.text << '\t' << candidate.log_probability << '\n';
} catch (const attend::Error& error) {
  std::cerr << error.what() << '\n';
  return 2;
}
