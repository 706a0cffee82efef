"""What tests share: fixtures, fakes of what is outside, programs that tests start, and generators of odd input."""
