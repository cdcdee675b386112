#pragma once

// The fp32 multiply-add peak of one core with the vectors of the CPU target chosen now: operations
// a second, a multiply-add counted as two.
double multiply_add_peak();
