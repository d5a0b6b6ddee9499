"""`python -m tests.field`: prints the grid of kinds by ways, how many cases each has, and each test with its report."""

from tests.field.grid import Way, all_cases, count_cases


def main() -> None:
    cases = all_cases()
    for kind, count in count_cases().items():
        print(f"\n{kind.name} ({count} {'case' if count == 1 else 'cases'})")
        for way in Way:
            found = [each for each in cases if each.kind == kind and way in each.ways]
            for each in found:
                print(f"  {way.value:16}  {each.before:6}  {each.report:28}  {each.test}")
            if not found:
                print(f"  {way.value:16}  can't occur: {kind.cannot.get(way, 'NOTHING IS SAID')}")


if __name__ == "__main__":
    main()
