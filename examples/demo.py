"""Train both Decomposable Attention models on the generated corpus: what word order is worth, in two minutes.

    make demo

The vanilla model sees a sentence as a bag of words and stays at chance on role reversal ("the dog is chasing the cat"
against "the cat is chasing the dog"); intra-attention with its distance bias tells the two apart.
"""
