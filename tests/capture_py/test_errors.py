"""What is said of an error of a library: one line, with its cause, and not cut off before it."""

import unittest

from isomer_capture.errors import short


def raised(function):
    try:
        function()
    except Exception as e:
        return e
    raise AssertionError("nothing was raised")


class Short(unittest.TestCase):
    def test_the_cause_stands_behind_what_announces_it(self):
        error = ValueError(
            "Validation error for field 'layers':\n    ValueError: 3 heads\n  at it\n"
        )
        said = short(error)
        self.assertEqual(said, "Validation error for field 'layers': ValueError: 3 heads")

    def test_a_traceback_in_a_message_is_left_out(self):
        error = RuntimeError(
            'Traceback (most recent call last):\n  File "a.py", line 3\n  ^^^\nno such'
        )
        self.assertEqual(short(error), "no such")
        self.assertEqual(short(RuntimeError("Traceback (most recent call last):")), "RuntimeError")

    def test_one_line_is_kept_whole(self):
        cause = "hidden_size must be a multiple of num_attention_heads, " * 4 + "and is 100"
        self.assertEqual(short(ValueError("\n\n" + cause)), cause)

    def test_what_says_nothing_is_named_by_its_place(self):
        def fails():
            raise AssertionError

        said = short(raised(fails))
        self.assertRegex(said, r"^AssertionError in .*test_errors\.py, line \d+$")
        self.assertEqual(short(AssertionError()), "AssertionError")


if __name__ == "__main__":
    unittest.main()
